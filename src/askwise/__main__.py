"""``python -m askwise``: the command line where the script `askwise` is not on the path."""

from askwise.cli.app import main

if __name__ == "__main__":
    main()
