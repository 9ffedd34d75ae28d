"""The models, compiled when they are first needed."""

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
from switchgnn.lab.simulator.errors import SimulatorError

MODELS = Path(__file__).parent / "models"
_FLAGS = ("-std=c++20", "-O2", "-x", "c++")


def compiled_models() -> Path:
    """Return the program that runs the models, compiled if need be.

    Raises:
        SimulatorError: a compiler is missing, or fails.
    """
    try:
        compiler = needed_compiler("A simulation")
        made_of = (compiler, *_FLAGS, *sources_in(MODELS))
        command = (compiler, *_FLAGS, "-I", str(MODELS), "-")
        compile_to = partial(compile_unit, command, '#include "simulation.cc"\n', "the models")
        return compiled_once(cache_folder("simulator"), "models", made_of, compile_to)
    except CompilerError as error:
        raise SimulatorError(f"{str(error).rstrip('.')}.") from error
