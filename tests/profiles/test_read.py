# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Profiles are read, or refused with one sentence."""

import math
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgnn.planner.plan.banks import BANKS_OF_SWITCHES
from switchgnn.profiles import (
    UNLIMITED,
    ProfileError,
    SwitchProfile,
    find_profile,
    known_profiles,
)

RATES = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
KEYS = {
    "banks": st.sampled_from(BANKS_OF_SWITCHES),
    "slot_bytes": st.integers(256, 2**32),
    "table_bytes": st.integers(1, 2**50),
    "passes_per_second": RATES,
    "ports": st.integers(1, 511),
    "port_gbits": RATES,
    "program_sizes": st.booleans(),
}


def toml(told):
    return "".join(f"{key} = {str(value).lower()}\n" for key, value in told.items())


def read(folder, text):
    file = folder / "mine.toml"
    file.write_text(text, encoding="utf-8")
    return find_profile(str(file))


@given(told=st.fixed_dictionaries({}, optional=KEYS))
def test_what_is_written_is_read(tmp_path_factory, told):
    found = read(tmp_path_factory.mktemp("any"), toml(told))
    assert found == SwitchProfile("mine", **told)


@given(text=st.text())
def test_any_text_is_a_switch_or_a_sentence(tmp_path_factory, text):
    file = tmp_path_factory.mktemp("any") / "mine.toml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        assert isinstance(find_profile(str(file)), SwitchProfile)
    except ProfileError as error:
        assert str(file) in str(error)
        assert str(error).endswith(".")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("bank = 1", "unknown field bank; known: .*banks"),
        ("banks = 3", "banks: 3 is not one of 1, 2, 4, 8"),
        ("banks = 16", "banks: 16"),
        ("banks = true", "banks: expected"),
        ("banks = 1.0", "banks: expected"),
        ("slot_bytes = 255", "slot_bytes: 255 is not from 256 to"),
        ("slot_bytes = 549755813888", "slot_bytes: .* is not from"),
        ("slot_bytes = -1", "slot_bytes: -1"),
        ('slot_bytes = "10MB"', "slot_bytes: expected"),
        ("table_bytes = 0", "table_bytes: 0 is not from 1"),
        ("passes_per_second = 0", "passes_per_second: 0.0 is not above 0"),
        ("passes_per_second = -1.0", "passes_per_second: -1.0"),
        ("passes_per_second = nan", "passes_per_second: nan"),
        ("port_gbits = inf", "port_gbits: inf"),
        ("ports = 512", "ports: 512 is not from 1 to 511"),
        ("ports = 0", "ports: 0"),
        ("program_sizes = 1", "program_sizes: expected"),
        ('name = "a\\u001bb"', "name: .* cannot be printed"),
        ("banks 1", "is not TOML"),
        ("[banks]", "banks: expected"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_key(tmp_path, line, says):
    with pytest.raises(ProfileError, match=says) as error:
        read(tmp_path, line)
    assert str(tmp_path / "mine.toml") in str(error.value)


def test_files_that_are_none(tmp_path):
    with pytest.raises(ProfileError, match=r"Cannot read the switch .*No such file"):
        find_profile(str(tmp_path / "none.toml"))
    with pytest.raises(ProfileError, match="Cannot read"):
        find_profile(str(tmp_path))
    (tmp_path / "large.toml").write_bytes(b"#" * (1 << 17))
    with pytest.raises(ProfileError, match="larger than 64 kB"):
        find_profile(str(tmp_path / "large.toml"))
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(ProfileError, match="Cannot read"):
        find_profile(str(tmp_path / "pipe.toml"))


def test_a_name_that_nobody_knows():
    with pytest.raises(ProfileError, match=r"No switch .tofino3.; known: .*tofino2, .*unlimited"):
        find_profile("tofino3")


def test_the_unlimited_one_is_what_simulations_assume():
    assert find_profile("unlimited") == UNLIMITED
    assert UNLIMITED.slots is None
    assert UNLIMITED.frames_per_second(188) is None
    UNLIMITED.check_attached(10_000, math.inf)


def test_these_come_along():
    tofinos = ("tofino1", "tofino2", "tofino2-256", "tofino2-64")
    assert known_profiles() == ("bmv2", "embedded", *tofinos, "unlimited")
    assert [find_profile(name).name for name in known_profiles()] == list(known_profiles())
