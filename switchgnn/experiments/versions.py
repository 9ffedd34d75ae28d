# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What made a result, beside its parameters: another version may give other numbers."""

import hashlib
import importlib.metadata
from pathlib import Path

import switchgnn
from switchgnn.simulator.compile import compiled_models
from switchgnn.simulator.wheel import PACKAGE

# A plan, and the time of an exchange, come of these.
_PACKAGES = ("host", "p4src", "planner", "profiles", "simulator")
_FILES = ("experiments/process.py",)
_LIBRARIES = ("switchgnn", PACKAGE, "numpy", "pymetis", "mtkahypar")
_DIGITS = 16


def current_versions() -> dict[str, str]:
    """Return the versions of libraries, of the models as they are compiled, and of the code.

    Raises:
        SimulatorError: ns-3 or a compiler is missing.
    """
    models = compiled_models().name
    libraries = {name: _version(name) for name in _LIBRARIES}
    return {**libraries, "models": models, "code": _code()}


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _code() -> str:
    total = hashlib.sha256()
    home = Path(switchgnn.__file__).parent
    files = [home / name for name in _FILES]
    for package in _PACKAGES:
        files += sorted(
            path for path in (home / package).rglob("*") if path.suffix in (".py", ".toml")
        )
    for path in files:
        total.update(path.relative_to(home).as_posix().encode() + b"\0")
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:_DIGITS]
