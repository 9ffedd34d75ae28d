# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Diagrams of runs: what they show, what they leave out, and that they need nothing else."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from switchgnn.lab.virtual.diagram.drawing import arrow_ends, cut, draw, svg_of, text_of
from switchgnn.lab.virtual.diagram.rows import Across, Arrow, Gap, Mark, read_trace, rows_of
from switchgnn.lab.virtual.scenario import Incident, IncidentKind, Rates, Scenario, read_scenario
from tests.virtual.mistaken import sums_that_are_recalled_are_wrong

FOLDER = Path(__file__).parent / "diagrams"
NAME = "sums exact"
BAD = Rates(loss=0.1, duplicate=0.1, late=0.05, reorder=0.1, corrupt=0.05)


@pytest.fixture
def known():
    trace = (FOLDER / "a_lost_sum.trace").read_text().splitlines()
    return draw(read_scenario(FOLDER / "a_lost_sum.json"), trace, NAME)


@pytest.mark.parametrize(("suffix", "written"), [("txt", text_of), ("svg", svg_of)])
def test_a_known_run_is_drawn_as_it_was(known, suffix, written):
    """`python -m tests.virtual.diagrams` draws it anew; look at it before it stays."""
    assert written(known) == (FOLDER / f"a_lost_sum.{suffix}").read_text()


def test_a_picture_needs_nothing_else(known):
    picture = svg_of(known)
    assert ElementTree.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314
    assert "prefers-color-scheme: dark" in picture
    assert "<script" not in picture
    assert re.findall(r"href|url\(|@import|https?:[^\"]*", picture) == [
        "http://www.w3.org/2000/svg"
    ]


def test_each_frame_of_a_run_is_shown(star):
    scenario = Scenario(seed=3, up=BAD, down=BAD)
    outcome = star.run(scenario, keeps_trace=True)
    rows = rows_of(read_trace(outcome.trace))
    # What comes later has an arrow where it sets out, too.
    later = outcome.faults["late"] + outcome.faults["reorder"]
    arrows = [row for row in rows if isinstance(row, Arrow)]
    assert sum(arrow.frames for arrow in arrows) == outcome.frames + later
    assert [row.time for row in rows] == sorted(row.time for row in rows)
    words = "\n".join(row.words for row in rows)
    for said in (": lost", "comes twice", "held back", "comes again", "changed on its way"):
        assert said in words
    gone = sum(arrow.frames for arrow in arrows if not arrow.comes)
    assert gone == outcome.faults["loss"] + later


def test_what_happens_once_goes_across_and_who_is_gone_has_no_line(star):
    incidents = (
        Incident(IncidentKind.SILENCE, "w1.up", 60, 0.01),
        Incident(IncidentKind.KILL, "w1", 130),
        Incident(IncidentKind.RESTART, "s0", 160, 0.5),
    )
    scenario = Scenario(seed=1, rounds=3, incidents=incidents)
    drawing = draw(scenario, star.run(scenario, keeps_trace=True).trace, NAME)
    across = [row.words for row, _ in drawing.rows if isinstance(row, Across)]
    assert across == ["silence of w1.up, 0.01 s", "kill of w1", "restart of s0, 0.5 s"]
    killed = next(n for n, (row, _) in enumerate(drawing.rows) if row.words == "w1 is killed")
    assert all(gone >= {"w1"} for _, gone in drawing.rows[killed:])
    away = [gone for row, gone in drawing.rows if row.words == "s0 ends"]
    assert ["s0" in gone for gone in away] == [True]
    assert "s0" not in next(
        gone for row, gone in reversed(drawing.rows) if row.words == "s0 starts"
    )


def test_a_long_run_is_cut_to_its_last_exchange(star):
    scenario = Scenario(seed=2, graph="random:60:150:1", rounds=4, up=BAD, down=BAD)
    with sums_that_are_recalled_are_wrong():
        outcome = star.run(scenario, keeps_trace=True)
    rows = rows_of(read_trace(outcome.trace))
    broken = next(n for n, row in enumerate(rows) if isinstance(row, Across) and row.broken == NAME)
    shown = cut(rows, NAME)
    assert shown[-1] == rows[broken]
    assert len(shown) <= 160 < broken
    gaps = [row for row in shown if isinstance(row, Gap)]
    left_out = sum(
        int(number) for gap in gaps for number in re.findall(r"(\d+) frames?", gap.words)
    )
    there = sum(row.frames for row in shown if isinstance(row, Arrow))
    assert there + left_out == sum(r.frames for r in rows[:broken] if isinstance(r, Arrow))


def test_a_run_that_lasts_for_minutes_is_cut_in_the_middle():
    beat = "000000010000000000000000832000000000000100000100000000"
    lines = [f"{1000 + n} w0.up passed {1500 + n} {beat}" for n in range(5000)]
    shown = cut(rows_of(read_trace([*lines, "9000 check ends: w0 still runs"])), "ends")
    assert len(shown) < 80
    (gap,) = (row for row in shown if isinstance(row, Gap))
    assert gap.words == f"{5000 - (len(shown) - 2):,} frames left out"


@pytest.mark.parametrize(("leaves", "spines"), [(2, 1), (3, 2)])
def test_leaves_and_spines_are_between_their_workers(soaks, leaves, spines):
    scenario = Scenario(seed=1, workers=4, leaves=leaves, spines=spines, cables=BAD, rounds=1)
    trace = soaks(leaves, spines).run(scenario, keeps_trace=True).trace
    drawing = draw(scenario, trace, NAME)
    assert len(set(drawing.parties)) == 4 + leaves + spines + 1
    for row, _ in drawing.rows:
        if isinstance(row, Arrow):
            source, target = arrow_ends(drawing, row)
            assert source != target
        elif isinstance(row, Mark):
            assert row.party in drawing.parties
    assert drawing.ends["l1s0.up"] == ("s1", f"s{leaves}")
    for line in text_of(drawing).splitlines()[5:]:
        assert len(line[:13]) == 13
