"""Lets `python -m switchgnn` run `switchgnn`."""

from switchgnn.commands.main import main

if __name__ == "__main__":
    main()
