"""`python -m conformance.proof.variants FILE`."""

from conformance.proof.variants.false_alarms import main

# Functions that other processes are to run must not be those of the module that is run itself.
if __name__ == "__main__":
    main()
