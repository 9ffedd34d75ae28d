"""The models, compiled against the headers of the `ns3` wheel when they are first needed."""

import importlib.metadata
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from switchgnn.base.machine import how_to_install
from switchgnn.base.native import (
    CompilerError,
    cache_folder,
    compile_unit,
    compiled_once,
    needed_compiler,
    sources_in,
)
from switchgnn.lab.simulator.errors import SimulatorError

PACKAGE = "ns3"


@dataclass(frozen=True)
class Wheel:
    """An installed ns-3."""

    version: str  # of the package
    include: Path  # the folder of the headers
    core: Path  # the library of the simulation core


def find_wheel() -> Wheel:
    """Find ns-3."""
    try:
        distribution = importlib.metadata.distribution(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        raise SimulatorError(
            f"A simulation needs ns-3, which is not installed: {how_to_install('simulate')}."
        ) from None
    folder = Path(str(distribution.locate_file(PACKAGE)))
    libraries = sorted(folder.glob("lib*/libns3*-core*.so"))
    if not libraries or not (folder / "include").is_dir():
        raise SimulatorError(
            f"The package {PACKAGE} {distribution.version} in {folder} has no headers or no core "
            f"library: install it as a wheel, {how_to_install('simulate')}."
        )
    return Wheel(distribution.version, folder / "include", libraries[0])


MODELS = Path(__file__).parent / "models"
# One translation unit: ns-3's headers take most of the time.
_FLAGS = ("-std=c++20", "-O2", "-DNDEBUG", "-x", "c++")


def compiled_models() -> Path:
    """Return the program that runs the models, compiled if need be."""
    wheel = find_wheel()
    try:
        compiler = needed_compiler("A simulation")
        # The path of the wheel is in the program, which looks for the library there.
        made_of = (wheel.version, str(wheel.core), compiler, *_FLAGS, *sources_in(MODELS))
        compile_to = partial(_compile, wheel, compiler)
        return compiled_once(cache_folder("simulator"), "models", made_of, compile_to)
    except CompilerError as error:
        raise SimulatorError(f"{str(error).rstrip('.')}.") from error


def _compile(wheel: Wheel, compiler: str, program: Path) -> None:
    includes = ("-isystem", str(wheel.include), "-I", str(MODELS))
    library = ("-x", "none", str(wheel.core), f"-Wl,-rpath,{wheel.core.parent}")
    command = (compiler, *_FLAGS, *includes, "-", *library)
    compile_unit(
        command, '#include "simulation.cc"\n', f"the models against ns-3 {wheel.version}", program
    )
