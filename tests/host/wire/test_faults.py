# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What `--faults` says: which link, which way, how often."""

import pytest

from switchgnn.host.wire.faults import FaultError, FaultRates, Faults, FaultyDirection

LINKS = ("w0", "w1", "l0s0", "l1s0")


def test_the_nearest_description_wins():
    faults = Faults.parse(
        "loss=0.1,up.loss=0.2,cables.loss=0.3,cables.down.loss=0.4,l1s0.loss=0.5,"
        "l1s0.up.loss=0.6,w1.corrupt=0.7,workers.corrupt=0.8,seed=3"
    )
    found = {(link, way): faults.of(link, way) for link in LINKS for way in ("up", "down")}
    assert found == {
        ("w0", "up"): FaultRates(loss=0.2, corrupt=0.8),
        ("w0", "down"): FaultRates(loss=0.1, corrupt=0.8),
        ("w1", "up"): FaultRates(loss=0.2, corrupt=0.7),
        ("w1", "down"): FaultRates(loss=0.1, corrupt=0.7),
        ("l0s0", "up"): FaultRates(loss=0.3),
        ("l0s0", "down"): FaultRates(loss=0.4),
        ("l1s0", "up"): FaultRates(loss=0.6),
        ("l1s0", "down"): FaultRates(loss=0.5),
    }
    assert faults.seed == 3


@pytest.mark.parametrize(
    ("text", "cables"),
    [
        ("", False),
        ("seed=1", False),
        ("loss=0.1", True),
        ("down.loss=0", True),
        ("cables.loss=0", True),
        ("l0s1.up.loss=0.1", True),
        ("workers.loss=0.1,w3.corrupt=0.1", False),
    ],
)
def test_relays_are_for_who_speaks_of_cables(text, cables):
    assert Faults.parse(text).on_cables is cables


@pytest.mark.parametrize("name", ["w2", "l2s0", "l0s1"])
def test_a_link_that_is_not_there_is_refused(name):
    faults = Faults.parse(f"loss=0.1,{name}.up.loss=0.2")
    with pytest.raises(FaultError, match=rf"{name}, which is not there; .* w0, w1, l0s0, l1s0"):
        faults.check(LINKS)


def test_a_star_has_no_cables():
    Faults.parse("loss=0.1,workers.loss=0.2,w1.loss=0.1").check(LINKS[:2])
    with pytest.raises(FaultError, match="Faults for cables, which is not there"):
        Faults.parse("cables.loss=0.1").check(LINKS[:2])


@pytest.mark.parametrize("word", ["x.loss=0.1", "l0.loss=0.1", "loss=1", "lost=0.1", "loss=much"])
def test_what_cannot_be_read_is_refused(word):
    with pytest.raises(FaultError, match=r"loss|probability|cable"):
        Faults.parse(word)


def test_each_way_of_each_link_draws_for_itself():
    faults = Faults.parse("loss=0.5,seed=1")
    frame = bytes(60)
    fates = {
        (link, way): tuple(bool(direction.disturb(frame)) for _ in range(64))
        for link in LINKS
        for way in ("up", "down")
        for direction in [FaultyDirection(faults, link, way)]
    }
    assert len(set(fates.values())) == len(fates)
    again = FaultyDirection(faults, "l1s0", "down")
    assert fates["l1s0", "down"] == tuple(bool(again.disturb(frame)) for _ in range(64))
