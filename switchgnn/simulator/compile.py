# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The models, compiled when they are first needed, and kept in the user's cache.

The C++ under `models/` is compiled against the headers of the `ns3` wheel. What comes of it
is kept under a name made of sources, ns-3, compiler and flags, so it is never out of date.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from switchgnn.simulator.errors import SimulatorError
from switchgnn.simulator.wheel import Wheel, find_wheel

MODELS = Path(__file__).parent / "models"
_COMPILERS = ("g++", "c++", "clang++")
# One translation unit: ns-3's headers take most of the time.
_FLAGS = ("-std=c++20", "-O2", "-DNDEBUG", "-x", "c++")
_LAST_WORDS = 400


def compiled_models() -> Path:
    """Return the program that runs the models, compiled if need be.

    Raises:
        SimulatorError: ns-3 or a compiler is missing, or it fails.
    """
    wheel, compiler = find_wheel(), find_compiler()
    folder = _cache_folder()
    program = folder / f"models-{_digest(wheel, compiler)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(program.with_suffix(".lock")):
            if not program.exists():
                _compile(wheel, compiler, program)
    except OSError as error:
        raise SimulatorError(f"Cannot keep the compiled models in {folder}: {error}.") from error
    return program


def what_is_missing() -> str | None:
    """Return in a sentence what a simulation needs and is not here; None if nothing is."""
    try:
        find_wheel()
        find_compiler()
    except SimulatorError as error:
        return str(error)
    return None


def find_compiler() -> str:
    """Return the path of the C++ compiler: $CXX, or one of those on the PATH.

    Raises:
        SimulatorError: there is none.
    """
    names = (os.environ["CXX"],) if os.environ.get("CXX") else _COMPILERS
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None:
        raise SimulatorError(
            f"A simulation needs a C++ compiler, but {' or '.join(names)} is not on the PATH: "
            "apt-get install g++."
        )
    return found


def _cache_folder() -> Path:
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "switchgnn" / "simulator"


def _digest(wheel: Wheel, compiler: str) -> str:
    total = hashlib.sha256()
    # The place is in the program, which looks for the library there.
    for word in (wheel.version, str(wheel.core), compiler, *_FLAGS):
        total.update(word.encode() + b"\0")
    for path in sorted(path for path in MODELS.rglob("*") if path.is_file()):
        total.update(
            path.relative_to(MODELS).as_posix().encode()
            + b"\0"
            + hashlib.sha256(path.read_bytes()).digest()
        )
    return total.hexdigest()[:16]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process at a time compile; the lock goes with the process that holds it."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _compile(wheel: Wheel, compiler: str, program: Path) -> None:
    unit = "".join(
        f'#include "{path.relative_to(MODELS)}"\n' for path in sorted(MODELS.rglob("*.cc"))
    )
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        output = Path(folder) / program.name
        places = ("-isystem", str(wheel.include), "-I", str(MODELS))
        library = ("-x", "none", str(wheel.core), f"-Wl,-rpath,{wheel.core.parent}")
        result = subprocess.run(
            [compiler, *_FLAGS, *places, "-", *library, "-o", str(output)],
            input=unit,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode != 0:
            raise SimulatorError(
                f"{compiler} cannot compile the models against ns-3 {wheel.version}: "
                f"{result.stderr.strip()[-_LAST_WORDS:]}"
            )
        output.replace(program)
