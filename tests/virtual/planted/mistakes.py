# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Mistakes that exchanges in virtual time find, each with the seed of a scenario that does."""

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from unittest import mock

from switchgnn.p4src import load_program
from tests.planted.mistakes import MISTAKES as IN_THE_TREE
from tests.planted.planting import changed_program, text_replaced
from tests.ptf.switchgnn_ptf.mistakes import MISTAKES as IN_PROGRAMS
from tests.simulation import subject
from tests.simulation.draw import Wish
from tests.simulation.scenario import Scenario
from tests.simulation.soak import Soak
from tests.virtual.planted import programs, tables

STAR, LEAF_SPINE = Wish(), Wish(2, 1)
# Each scenario has a Byzantine worker; all-reduces; fewer bits or caches.
BYZANTINE, REDUCES, COMPRESSED = Wish(byzantine=True), Wish(reduces=True), Wish(compression=True)
REDUCES_OF_LEAVES = replace(LEAF_SPINE, reduces=True)
# After changes of the product, another scenario than that of the seed may find a mistake.
_OTHERS = range(100)


@dataclass(frozen=True)
class Planted:
    """A mistake."""

    name: str
    seed: int | Scenario  # of a scenario of the wish that finds it; or that scenario, for rare ones
    wish: Wish = STAR
    # file, what stands there once, and what does with the mistake; or None
    text: tuple[str, str, str] | None = None
    in_program: object = None  # changes the compiled program in place; or None
    in_plan: object = None  # returns the switch's part of a plan with it; or None

    @contextmanager
    def planted(self):
        """Yield a soak of exchanges with the mistake."""
        wish = replace(self.wish, backend="python") if self.in_program else self.wish
        with text_replaced(*self.text) if self.text else nullcontext(), self._plan():
            yield Soak(wish, self.program())

    def found_by(self, soak):
        """Return whether its scenario violates a check, or another one of the wish."""
        if isinstance(self.seed, Scenario):
            return bool(soak.run(self.seed).violations)
        seeds = (self.seed, *_OTHERS)
        return any(soak.run(soak.scenario(seed)).violations for seed in seeds)

    def program(self):
        """Return the program with the mistake, or the product's."""
        program = load_program()
        if self.in_program is None:
            return program
        return changed_program(program, self.name, self.in_program)

    def _plan(self):
        if self.in_plan is None:
            return nullcontext()
        original = subject.load_plan

        def load(parts):
            manifest, part = parts
            return original((manifest, self.in_plan(part)))

        return mock.patch.object(subject, "load_plan", load)


def known(name, seed, wish=STAR):
    """Return a mistake that tests/planted has."""
    mistake = next(each for each in IN_THE_TREE if each.name == name)
    return Planted(name, seed, wish, text=(mistake.file, mistake.old, mistake.new))


def known_program(name, seed, wish=STAR):
    """Return a mistake that tests/ptf has."""
    return Planted(name, seed, wish, in_program=IN_PROGRAMS[name])


def known_plan(name, seed):
    """Return a mistake in the switch's tables."""
    original = getattr(tables, name)

    def change(part):
        try:
            return original(part)
        except (AssertionError, IndexError):
            # This plan has no place for it.
            return part

    return Planted(name, seed, in_plan=change)


def in_text(name, seed, file, old, new, wish=STAR):
    """Return a mistake in the text of a file."""
    return Planted(name, seed, wish, text=(file, old, new))


def in_program(name, seed):
    """Return a mistake in the compiled program."""
    return Planted(name, seed, in_program=programs.CHANGES[name])


INSTALL = "controller/install.py"
BARRIER, HEARTBEAT = "host/innetwork/barrier.py", "host/heartbeat.py"
EXCHANGE, OUTGOING = "host/innetwork/exchange.py", "host/innetwork/outgoing.py"
RECEIVER, RESPONDER = "host/innetwork/receiver.py", "host/innetwork/responder.py"
SENDER, UNITS = "host/innetwork/sender.py", "host/innetwork/units.py"

MISTAKES = (
    known("lost_sums_not_recalled", 1),
    known("rows_of_the_last_round", 9),
    known("units_not_compared", 9),
    known("body_not_checked", 6),
    known("last_fragment_dropped", 1),
    known("the_living_are_named", 18),
    known("done_not_said_again", 57),
    known("installed_once", 2),
    known("small_changes_taken_for_sent", 5, COMPRESSED),
    known("each_row_stands_for_all", 1, COMPRESSED),
    known_program("carry_between_lanes", 0),
    known_program("forget_sources", 1),
    known_program("overwrite_by_stale", 6),
    known_program("believe_checksums", 1),
    known_program("count_repeated_done", 1),
    known_program("release_nothing", 27),
    known_program("share_the_slots", 6),
    known_program("share_the_last_tags", 1),
    known_program("forget_newer_groups", 8),
    known_program("let_any_tag_in", 2, BYZANTINE),
    known_program("take_every_heartbeat", 2),
    known_program("begin_without_the_opening", 5),
    known_program("forget_the_width", 13),
    known_program("forget_the_level", 1, LEAF_SPINE),
    known_program("ask_no_leaf", 4, LEAF_SPINE),
    known_program("keep_the_part", 6, LEAF_SPINE),
    known_program("report_as_a_worker", 2, LEAF_SPINE),
    known_program("forget_contributors", 1, REDUCES),
    known_program("begin_older_fragments", 6, REDUCES),
    known_program("forget_exponents", 1, REDUCES),
    known_program("reduce_as_a_worker", 1, REDUCES_OF_LEAVES),
    known_plan("drop_a_contribution", 0),
    known_plan("add_one_twice", 0),
    known_plan("swap_two_destinations", 0),
    known_plan("refuse_a_partial_sum", 1),
    known_plan("give_a_partial_sum_to_another", 1),
    in_program("any_process", 79),
    in_program("acknowledge_what_comes", 1),
    in_program("nobody_has_the_maximum", 1),
    in_program("next_turn_at_once", 0),
    in_program("missing_without_count", 6),
    in_text(
        "own_scale",
        0,
        EXCHANGE,
        "kept or self._scales.choose(self._round, largest, lasting=lasting)\n",
        "kept or self._scales.choose(\n"
        "            self._round, type(largest)(work.own, largest.worker), lasting=lasting\n"
        "        )\n",
    ),
    in_text(
        "silent_in_a_block",
        57,
        UNITS,
        "            if late or now > heartbeat_at:",
        "            if late and now < 0.0:",
    ),
    in_text(
        "any_acknowledgement", 1, SENDER, "        if count < size:\n", "        if count < 0:\n"
    ),
    in_text("groups_not_sent_again", 1, SENDER, "            self._repeat(group)\n", ""),
    in_text(
        "no_window",
        2,
        "host/congestion.py",
        "        room = int(self.window) - in_flight\n",
        "        room = 64\n",
    ),
    in_text(
        "one_neighbour_left_out",
        1,
        RECEIVER,
        "        for source in self._schedule.neighbours_of(index):\n            total",
        "        for source in self._schedule.neighbours_of(index)[1:]:\n            total",
    ),
    in_text(
        "repeats_counted",
        5,
        RECEIVER,
        "        if not self._awaited[index]:\n            self._counters.repeated += 1\n"
        "            return False\n        if index in",
        "        if index in",
    ),
    in_text(
        "fetched_once",
        1,
        RECEIVER,
        "        for key in doubt.awaited:\n            self._send(",
        "        for key in ():\n            self._send(",
    ),
    in_text(
        "first_fragment_served",
        113,
        OUTGOING,
        "        lanes = self.lanes.get(in_pool(request.fragment, 0))\n        return",
        "        lanes = next(iter(self.lanes.values()))\n        return",
    ),
    in_text("early_sums_kept_for_ever", 12, RESPONDER, "        self._kept.clear()\n", ""),
    in_text(
        "sessions_not_compared",
        237,
        RESPONDER,
        "        if header.session != self._session and",
        "        if header.session < 0 and",
    ),
    in_text(
        "last_block_of_a_vertex",
        8,
        EXCHANGE,
        "[in_pool(unit.fragment, 0)][rows] += sums\n",
        "[in_pool(unit.fragment, 0)][rows] = sums\n",
    ),
    in_text(
        "void_rounds_not_left",
        14,
        EXCHANGE,
        "            if magnitude > fixed_point.limit:\n",
        "            if magnitude < 0:\n",
    ),
    in_text(
        "waiting_is_enough",
        1,
        BARRIER,
        "        if header.kind is Kind.WAITING:\n",
        "        if header.kind is Kind.WAITING and self.unit.block == OPENING_BLOCK:\n",
    ),
    in_text(
        "earlier_advances_taken",
        6,
        BARRIER,
        "        if meeting is None or header.unit != meeting.unit:\n",
        "        if meeting is None or header.unit.order > meeting.unit.order:\n",
    ),
    in_text(
        "more_units_than_pools",
        0,
        UNITS,
        "        free = self._begun - oldest < self._pools\n",
        "        free = self._begun - oldest <= self._pools\n",
    ),
    in_text(
        "reported_out_of_order",
        1,
        UNITS,
        "        return next((unit for unit in self._in_flight if unit.meeting is None), None)\n",
        "        left = [unit for unit in self._in_flight if unit.meeting is None]\n"
        "        return next((unit for unit in left if unit.done), next(iter(left), None))\n",
    ),
    in_text(
        "no_heartbeat",
        0,
        HEARTBEAT,
        "self._bit, self._changed = not self._bit, now",
        "self._bit, self._changed = True, now",
    ),
    in_text(
        "turns_not_forgotten",
        10,
        INSTALL,
        "if here.session == serving else 1",
        "if here.session == serving else 0",
    ),
    in_text(
        "session_not_remembered",
        10,
        "controller/watch.py",
        "        self._session = report.session\n",
        "",
    ),
    in_text(
        "one_member_left_out",
        1,
        "controller/controls/session.py",
        "            sum(plan.members),",
        "            sum(plan.members[:-1]),",
    ),
    in_text(
        "all_slots_in_flight",
        6,
        "host/reduce/pipeline.py",
        "max(1, len(sums.awaited) // 2)",
        "len(sums.awaited)",
        REDUCES,
    ),
    in_text(
        "any_sum_taken",
        1,
        "host/reduce/stream.py",
        "        elif flow is None or not flow.sums.awaits(number_of(header)):\n",
        "        elif flow is None:\n",
        REDUCES,
    ),
    in_text(
        "answers_of_worker_0",
        1,
        "host/reduce/stream.py",
        "        own = header._replace(src_id=self._worker)\n",
        "        own = header\n",
        REDUCES,
    ),
    in_text(
        "heartbeats_not_heeded",
        2,
        "host/reduce/timeout.py",
        "contributed | own, heartbeats, now",
        "contributed | own, 0, now",
        REDUCES,
    ),
    in_text(
        "scale_without_workers",
        2,
        "host/reduce/scale.py",
        "2.0 ** (31 - self.workers.bit_length()) / ",
        "2.0 ** (31 - (self.workers - 1).bit_length()) / ",
        REDUCES,
    ),
    in_text(
        "sent_at_another_scale",
        58,
        OUTGOING,
        "        self.fixed_point, self.sums = None, None\n        self.sent.clear()\n",
        "        self.fixed_point = None\n",
        COMPRESSED,
    ),
    in_text(
        "changes_sent_twice",
        5,
        OUTGOING,
        "        self.sent = dict(rows.cached)\n",
        "        self.sent = self.sent or dict(rows.cached)\n",
        COMPRESSED,
    ),
)
