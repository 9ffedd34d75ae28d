# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The models, compiled against the headers of the `ns3` wheel when they are first needed."""

from functools import partial
from pathlib import Path

from switchgnn.base.native import (
    CompilerError,
    cache_folder,
    compile_unit,
    compiled_once,
    needed_compiler,
    sources_in,
)
from switchgnn.simulator.errors import SimulatorError
from switchgnn.simulator.wheel import Wheel, find_wheel

MODELS = Path(__file__).parent / "models"
# One translation unit: ns-3's headers take most of the time.
_FLAGS = ("-std=c++20", "-O2", "-DNDEBUG", "-x", "c++")


def compiled_models() -> Path:
    """Return the program that runs the models, compiled if need be.

    Raises:
        SimulatorError: ns-3 or a compiler is missing, or it fails.
    """
    wheel, compiler = find_wheel(), _compiler()
    folder = cache_folder("simulator")
    # The place of the wheel is in the program, which looks for the library there.
    made_of = (wheel.version, str(wheel.core), compiler, *_FLAGS, *sources_in(MODELS))
    try:
        return compiled_once(folder, "models", made_of, partial(_compile, wheel, compiler))
    except OSError as error:
        raise SimulatorError(f"Cannot keep the compiled models in {folder}: {error}.") from error


def what_is_missing() -> str | None:
    """Return in a sentence what a simulation needs and is not here; None if nothing is."""
    try:
        find_wheel()
        _compiler()
    except SimulatorError as error:
        return str(error)
    return None


def _compiler() -> str:
    try:
        return needed_compiler("A simulation")
    except CompilerError as error:
        raise SimulatorError(f"{error}.") from error


def _compile(wheel: Wheel, compiler: str, program: Path) -> None:
    unit = "".join(
        f'#include "{path.relative_to(MODELS)}"\n' for path in sorted(MODELS.rglob("*.cc"))
    )
    places = ("-isystem", str(wheel.include), "-I", str(MODELS))
    library = ("-x", "none", str(wheel.core), f"-Wl,-rpath,{wheel.core.parent}")
    command = (compiler, *_FLAGS, *places, "-", *library, "-o", str(program.absolute()))
    try:
        compile_unit(command, unit, f"the models against ns-3 {wheel.version}", MODELS)
    except CompilerError as error:
        raise SimulatorError(str(error)) from error
