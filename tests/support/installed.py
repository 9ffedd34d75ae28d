# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Environments as pip makes them from the wheel and one extra, without a network.

An environment links the files of the distributions that the wheel requires, and of no others. pip
would choose the same versions as it did for the environment that runs the tests.
"""

import importlib.metadata
import os
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

from packaging.requirements import Requirement


def environment_of(wheel, folder, extra=None):
    """Make an environment with the wheel and the extra; return its Python.

    Args:
        wheel: the file of the wheel.
        folder: where the environment is made.
        extra: one extra of the wheel, or None.

    Raises:
        importlib.metadata.PackageNotFoundError: the extra is not installed here.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (ours,) = importlib.metadata.distributions(path=[str(site)])
    for distribution in _required(ours, extra):
        _link(distribution, site)
    return folder / "bin" / Path(sys.executable).name


def _required(first, extra):
    """Return the distributions that one requires, directly or through others, with an extra."""
    found, left = {}, [(first, extra)]
    while left:
        distribution, wanted = left.pop()
        for line in distribution.requires or ():
            needed = Requirement(line)
            if needed.marker is not None and not needed.marker.evaluate({"extra": wanted or ""}):
                continue
            for its_extra in (None, *sorted(needed.extras)):
                key = needed.name.lower(), its_extra
                if needed.name != first.name and key not in found:
                    found[key] = importlib.metadata.distribution(needed.name)
                    left.append((found[key], its_extra))
                elif needed.name == first.name and its_extra is not None and key not in found:
                    found[key] = first
                    left.append((first, its_extra))
    return {each.name: each for each in found.values() if each is not first}.values()


def _link(distribution, site):
    for file in distribution.files or ():
        if ".." in file.parts or "__pycache__" in file.parts:
            continue  # Programs, and what Python makes again.
        link = site / file
        link.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(link):
            link.symlink_to(distribution.locate_file(file))
