"""The built package, and environments as pip makes them from the wheel and one extra.

Environments are made without a network: each links what the distributions that the wheel requires
have installed here, and no others. pip would choose the same versions.
"""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

_ROOT = Path(__file__).parent.parent.parent
# What is made and not part of the tree; a checkout has more of it than a clone.
MADE = shutil.ignore_patterns(
    *(".git", ".venv*", ".*_cache", ".hypothesis", ".run", "__pycache__", "*.egg-info"),
    *("build", "dist", "results"),
)
HOOKS = "from setuptools import build_meta; import sys; build_meta.build_{}(sys.argv[1])"


def copy_of_the_checkout(folder):
    return shutil.copytree(_ROOT, folder, symlinks=True, ignore=MADE)


def build(what, tree, out):
    """Build an `sdist` or a `wheel` of a copy in a new folder; return its file."""
    pytest.importorskip("setuptools", "77.0.3", reason="setuptools is too old, or missing")
    out.mkdir()
    subprocess.run([sys.executable, "-c", HOOKS.format(what), str(out)], cwd=tree, check=True)
    (made,) = out.iterdir()
    return made


def environment_of(wheel, folder, extra=None):
    """Make an environment with the wheel and one extra or None; return its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (ours,) = importlib.metadata.distributions(path=[str(site)])
    for distribution in _required(ours, extra):
        # Distributions that share a folder, such as `google`, are all there or not needed.
        for name in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            link = site / name
            if not os.path.lexists(link):
                link.symlink_to(distribution.locate_file(name))
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
