# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Profiles by name, or from a TOML file of one's own."""

import math
from collections.abc import Iterator
from pathlib import Path

from switchgnn.base.records import RecordError, make_record, read_toml
from switchgnn.planner.plan.banks import BANKS_OF_SWITCHES
from switchgnn.planner.presets import SLOT_BYTES
from switchgnn.profiles.errors import ProfileError
from switchgnn.profiles.profile import SwitchProfile

_FOLDER = Path(__file__).parent / "known"
_SUFFIX = ".toml"
_MOST_BYTES = 1 << 16
# A plan needs two slots; their numbers have 32 bits.
_LEAST_SLOTS, _MOST_SLOTS = 2, (1 << 32) - 1
_MOST_TABLE_BYTES = 1 << 50
# Port numbers of the program have nine bits, and the last one drops.
_MOST_PORTS = 511
_SECONDS = ("frame_seconds", "host_frame_seconds", "host_exchange_seconds", "barrier_seconds")
_MOST_SECONDS = 1.0


def known_profiles() -> tuple[str, ...]:
    """Return the names of the profiles that come along."""
    return tuple(sorted(path.stem for path in _FOLDER.glob(f"*{_SUFFIX}")))


def find_profile(switch: str) -> SwitchProfile:
    """Return a profile.

    Args:
        switch: a name of `known_profiles`, or a TOML file.

    Raises:
        ProfileError: there is none, or the file describes no switch; the sentence says where and
            what.
    """
    known = known_profiles()
    if switch in known:
        return _read(_FOLDER / f"{switch}{_SUFFIX}")
    path = Path(switch)
    if path.suffix != _SUFFIX and not path.exists():
        raise ProfileError(
            f"No switch {switch!r}; known: {', '.join(known)}, or a file of one's own "
            f"(NAME{_SUFFIX})."
        )
    return _read(path)


def _read(path: Path) -> SwitchProfile:
    told = read_toml(path, _MOST_BYTES, "switch", ProfileError)
    try:
        profile = make_record(SwitchProfile, {"name": path.stem, **told})
    except RecordError as error:
        raise ProfileError(f"{path} describes no switch: {error}.") from error
    for problem in _problems(profile):
        raise ProfileError(f"{path} describes no switch: {problem}.")
    return profile


def _problems(profile: SwitchProfile) -> Iterator[str]:
    if not profile.name or not profile.name.isprintable():
        yield f"name: {profile.name!r} cannot be printed"
    if profile.banks not in BANKS_OF_SWITCHES:
        known = ", ".join(map(str, BANKS_OF_SWITCHES))
        yield f"banks: {profile.banks} is none of {known}"
    for key, value, least, most in (
        ("slot_bytes", profile.slot_bytes, SLOT_BYTES * _LEAST_SLOTS, SLOT_BYTES * _MOST_SLOTS),
        ("table_bytes", profile.table_bytes, 1, _MOST_TABLE_BYTES),
        ("ports", profile.ports, 1, _MOST_PORTS),
    ):
        if value is not None and not least <= value <= most:
            yield f"{key}: {value:,} is not from {least:,} to {most:,}"
    for key, rate in (
        ("passes_per_second", profile.passes_per_second),
        ("port_gbits", profile.port_gbits),
    ):
        if rate is not None and not 0 < rate < math.inf:
            yield f"{key}: {rate} is not above 0 and finite"
    for key in _SECONDS:
        seconds = getattr(profile, key)
        if seconds is not None and not 0 <= seconds <= _MOST_SECONDS:
            yield f"{key}: {seconds} is not from 0 to {_MOST_SECONDS:g}"
