"""`python -m conformance.proof.variants FILE`."""

from conformance.proof.variants.false_alarms import main

# Functions for other processes must not be in the module that is executed.
if __name__ == "__main__":
    main()
