"""`python -m conformance.proof.served FILE`."""

from conformance.proof.served.looking import main

# Functions for other processes must not be in the module that is executed.
if __name__ == "__main__":
    main()
