# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The `ns3` wheel: where its headers and libraries are."""

import importlib.metadata
from dataclasses import dataclass
from pathlib import Path

from switchgnn.base.machine import how_to_install
from switchgnn.simulator.errors import SimulatorError

PACKAGE = "ns3"


@dataclass(frozen=True)
class Wheel:
    """An installed ns-3.

    Attributes:
        version: of the package.
        include: the folder of the headers.
        core: the library of the simulation core.
    """

    version: str
    include: Path
    core: Path


def find_wheel() -> Wheel:
    """Find ns-3.

    Raises:
        SimulatorError: it is not installed, or not as its wheel is.
    """
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
