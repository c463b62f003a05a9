"""`python -m conformance.proof.chaos FILE`."""

from conformance.proof.chaos.matrix import main

# Functions that other processes are to run must not be those of the module that is run itself.
if __name__ == "__main__":
    main()
