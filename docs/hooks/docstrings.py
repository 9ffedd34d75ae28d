"""Reads docstrings as people write them here, where mkdocstrings is stricter."""

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`~?([^`]+)`")
# `first, second: what both are`, with the deeper lines below it.
_SEVERAL = re.compile(r"^( +)(\w+(?:, \w+)+)(:.*(?:\n\1 +.*)*)", re.MULTILINE)
_SECTION = re.compile(r"^(?:Args|Attributes):\n(?:(?: +.*)?\n?)*", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Leaves out the names of Sphinx's roles, and gives each argument a line of its own."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:  # noqa: ANN401
        """Change the docstring of a module, class, function or attribute that was read."""
        if obj.docstring is not None:
            plain = _ROLE.sub(r"`\1`", obj.docstring.value)
            obj.docstring.value = _SECTION.sub(lambda section: _separate(section[0]), plain)


def _separate(section: str) -> str:
    def each(found: re.Match[str]) -> str:
        return "\n".join(f"{found[1]}{name}{found[3]}" for name in found[2].split(", "))

    return _SEVERAL.sub(each, section)
