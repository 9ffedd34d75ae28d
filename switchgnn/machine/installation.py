# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How the program came to be here, and so which commands of pip mend it."""

import importlib.metadata
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlparse

import msgspec

import switchgnn

_NAME = "switchgnn"
# What pip notes beside a package: https://packaging.python.org/en/latest/specifications/direct-url/
_ORIGIN = "direct_url.json"


@dataclass(frozen=True)
class Installation:
    """Where changes of the program would show.

    Attributes:
        checkout: the folder that the program runs from; None: it was installed as a wheel, and the
            folder that it was built from, if there is one, means nothing to it.
    """

    checkout: Path | None

    def mend(self, extra: str | None = None) -> str:
        """Return the command that installs what the program needs.

        Args:
            extra: the extra whose packages are wanted; None: those of every installation.
        """
        brackets = "" if extra is None else f"[{extra}]"
        if self.checkout is None:
            return f"pip install '{_NAME}{brackets}'" if extra else f"pip install {_NAME}"
        place = "." if self.checkout.resolve() == Path.cwd().resolve() else str(self.checkout)
        words = f"{place}{brackets}"
        return f"pip install -e {words}" if words == "." else f"pip install -e '{words}'"


def find_installation() -> Installation:
    """Look at what pip has noted; where it has noted nothing, at the files themselves."""
    try:
        noted = importlib.metadata.distribution(_NAME).read_text(_ORIGIN)
    except importlib.metadata.PackageNotFoundError:
        noted = None
    if noted is not None:
        return Installation(_editable_folder(noted))
    root = Path(switchgnn.__file__).parent.parent
    return Installation(root if (root / "pyproject.toml").is_file() else None)


def how_to_install(extra: str) -> str:
    """Return the command that installs the packages of an extra, for errors that miss one."""
    return find_installation().mend(extra)


class _Folder(msgspec.Struct):
    editable: bool = False


class _Origin(msgspec.Struct):
    url: str
    dir_info: _Folder = msgspec.field(default_factory=_Folder)


def _editable_folder(noted: str) -> Path | None:
    try:
        origin = msgspec.json.decode(noted, type=_Origin)
    except msgspec.DecodeError:
        return None
    address = urlparse(origin.url)
    if not origin.dir_info.editable or address.scheme != "file":
        return None
    return Path(unquote(address.path))
