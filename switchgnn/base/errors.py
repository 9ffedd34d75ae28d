"""The one error class that the command line shows as a sentence."""


def printable(text: str) -> str:
    """Return a text with its control characters escaped: terminals obey them in quoted files."""
    return "".join(
        each if each.isprintable() or each == "\n" else ascii(each)[1:-1] for each in text
    )


class SwitchGNNError(Exception):
    """A failure that the user can act on: what failed, on which object, what to do.

    The command line prints the message without a traceback and exits with code 2.
    """

    details = ""  # printed above the message, such as a traceback of the user's code

    def __str__(self) -> str:
        return printable(super().__str__())
