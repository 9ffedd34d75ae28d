"""The command line, `switchgnn`."""

from switchgnn.commands.main import main

__all__ = ["main"]
