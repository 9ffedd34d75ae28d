"""Sentences about names that do not exist."""

import difflib
from collections.abc import Iterable


def no_such(what: str, name: str, known: Iterable[str], *, where: str = "", also: str = "") -> str:
    """Return the sentence about a wrong name; `where` follows it, and `also` the known ones."""
    names = list(known)
    said = f"No {what} {name!r}{where}; known: {', '.join(names)}{also}"
    return f"{said}{did_you_mean(name, names) or '.'}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about a wrong name: the nearest one; empty: none is near."""
    lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), lower, n=1)
    return f"; did you mean {lower[near[0]]}?" if near else ""
