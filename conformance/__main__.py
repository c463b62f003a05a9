"""`python -m conformance` is the command line."""

from conformance.cli import main

if __name__ == "__main__":
    main()
