"""`python -m conformance.proof.chaos FILE`."""

from conformance.proof.chaos.matrix import main

# Functions for other processes must not be in the module that is executed.
if __name__ == "__main__":
    main()
