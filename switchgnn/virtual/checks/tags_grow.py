# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a switch remembers of tags only grows (invariants 1, 3 and 4)."""

from collections.abc import Sequence
from operator import lt

from switchgnn.virtual.checks.check import SwitchCheck
from switchgnn.virtual.parts.switch import VirtualSwitch
from switchgnn.virtual.scene import Scene

# Of how many arrivals one is looked at: reading registers costs more than forwarding frames.
_ONE_OF = 64
# The last bits of a bank's state are the count; what is in front of them is the tag.
_COUNT_BITS = 16
_SOURCES, _STATE = ".last_tag", ".state"


class TagsGrow(SwitchCheck):
    """Compares the tags of sources and slots with those of a look before."""

    def begin(self, scene: Scene) -> None:
        """Look at a scene from now on."""
        super().begin(scene)
        self._before: dict[tuple[str, str], list[int]] = {}
        self._images: dict[tuple[str, str], Sequence[int]] = {}
        self._arrivals = 0
        plan = scene.subject.plan
        self._slots = plan.manifest.slots_per_bank
        self._sources = 2 * scene.subject.oracle.vertices

    def ends(self, switch: VirtualSwitch) -> None:
        """Forget what a switch forgets."""
        for key in [each for each in self._before if each[0] == switch.name]:
            del self._before[key], self._images[key]

    def taken(self, switch: VirtualSwitch, port: int, frames: list[bytes]) -> None:
        """Look at the switch now and then.

        Args:
            switch: where.
            port: its port.
            frames: all of them.
        """
        self._arrivals += 1
        engine = switch.engine
        if self._arrivals % _ONE_OF or engine is None:
            return
        for name, register in engine.state.registers.items():
            of_sources = name.endswith(_SOURCES)
            if not of_sources and not name.endswith(_STATE):
                continue
            number = self._sources if of_sources else self._slots
            image, key = register.image(number), (switch.name, name)
            if image == self._images.get(key):
                continue
            self._images[key] = image
            tags = list(register.cells[:number])
            if not of_sources:
                tags = [state >> _COUNT_BITS for state in tags]
            before = self._before.get(key, tags)
            self._before[key] = tags
            if any(map(lt, tags, before)):
                self._tell(switch, name, before, tags)

    def _tell(self, switch: VirtualSwitch, name: str, before: list[int], tags: list[int]) -> None:
        """Tell of each cell that has an older tag."""
        for place, (old, new) in enumerate(zip(before, tags, strict=True)):
            if new < old:
                self.scene.violated(
                    "tags grow",
                    f"switch {switch.name}: cell {place} of {name} had tag {old:#x}, and has "
                    f"{new:#x}",
                )
