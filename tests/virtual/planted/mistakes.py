# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Mistakes that exchanges in virtual time find, each within a number of seeds.

`python -m tests.virtual.planted.table` makes the table of docs/evidence/reliability.md from this
list.
"""

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from switchgnn.p4src import load_program
from tests.end_to_end import test_planted_mistakes as in_plans
from tests.planted.mistakes import MISTAKES as IN_THE_TREE
from tests.planted.planting import changed_program, text_replaced
from tests.ptf.switchgnn_ptf.mistakes import MISTAKES as IN_PROGRAMS
from tests.simulation import subject
from tests.simulation.draw import Wish
from tests.simulation.soak import Soak
from tests.virtual.planted import programs

STAR, LEAF_SPINE = (0, 0), (2, 1)
HOST, BARRIER, CONTROLLER = "host", "barrier", "controller"
PROGRAM, PLAN, REDUCE, CACHE = "program", "plan", "reduce", "cache"


@dataclass(frozen=True)
class Planted:
    """A mistake.

    Attributes:
        name: for `pytest -k`.
        part: where it is.
        what: it in a few words, without a full stop.
        new: whether no other suite knows it.
        topology: leaves and spines.
        misfits: whether each scenario has somebody who is mad or differs.
        reduces: whether each scenario has all-reduces.
        compression: whether each scenario has fewer bits or caches.
        text: file, what stands there once, and what does with the mistake; or None.
        in_program: changes the compiled program in place; or None.
        in_plan: returns the switch's part of a plan with it; or None.
    """

    name: str
    part: str
    what: str
    new: bool = True
    topology: tuple[int, int] = STAR
    misfits: bool = False
    reduces: bool = False
    compression: bool = False
    text: tuple[str, str, str] | None = None
    in_program: object = None
    in_plan: object = field(default=None)

    @contextmanager
    def planted(self):
        """Yield a soak of exchanges with the mistake."""
        backend = "python" if self.in_program else "auto"
        wish = Wish(
            *self.topology,
            backend=backend,
            misfits=self.misfits,
            reduces=self.reduces,
            compression=self.compression,
        )
        soak = Soak(wish, self.program())
        with text_replaced(*self.text) if self.text else nullcontext(), self._plan():
            yield soak

    def seeds_until_found(self, first, most):
        """Return how many seeds it takes, and what does not hold; (0, ()) if that is not enough."""
        with self.planted() as soak:
            for number, scenario in zip(range(1, most + 1), soak.scenarios(first), strict=False):
                violations = soak.run(scenario).violations
                if violations:
                    return number, tuple(each.name for each in violations)
        return 0, ()

    def program(self):
        """Return the program with the mistake, or the product's."""
        program = load_program()
        if self.in_program is None:
            return program
        return changed_program(program, self.name, self.in_program)

    @contextmanager
    def _plan(self):
        if self.in_plan is None:
            yield
            return
        original = subject.load_plan

        def load(parts):
            manifest, part = parts
            return original((manifest, self.in_plan(part)))

        subject.load_plan = load
        try:
            yield
        finally:
            subject.load_plan = original


def known(name, part, **options):
    """Return a mistake that tests/planted has."""
    mistake = next(each for each in IN_THE_TREE if each.name == name)
    text = (mistake.file, mistake.old, mistake.new)
    return Planted(name, part, mistake.what, new=False, text=text, **options)


def known_program(name, what, **options):
    """Return a mistake that tests/ptf has."""
    change = IN_PROGRAMS[name]
    return Planted(name, PROGRAM, what, new=False, in_program=change, **options)


def known_plan(name, what, **options):
    """Return a mistake in the switch's tables that tests/end_to_end has."""
    original = getattr(in_plans, name)

    def change(part):
        try:
            return original(part)
        except (AssertionError, IndexError):
            # This plan has no place for it.
            return part

    return Planted(name, PLAN, what, new=False, in_plan=change, **options)


def in_text(name, part, what, file, old, new, **options):
    """Return a new mistake in the text of a file."""
    return Planted(name, part, what, text=(file, old, new), **options)


def of_reduces(name, what, file, old, new):
    """Return a new mistake in a file of the all-reduce."""
    return in_text(name, REDUCE, what, f"host/reduce/{file}", old, new, reduces=True)


def of_caches(name, what, file, old, new):
    """Return a new mistake in what workers with caches send."""
    return in_text(name, CACHE, what, file, old, new, compression=True)


def in_program(name, what, **options):
    """Return a new mistake in the compiled program."""
    change = programs.CHANGES[name]
    return Planted(name, PROGRAM, what, in_program=change, **options)


RECEIVER = "host/innetwork/receiver.py"
SENDER = "host/innetwork/block.py"
EXCHANGE = "host/innetwork/exchange.py"
HOST_BARRIER = "host/innetwork/barrier.py"
MEETING = "host/innetwork/barrier.py"
BLOCK = "host/innetwork/block.py"
OUTGOING = "host/innetwork/outgoing.py"

MISTAKES = (
    # --- known to other suites
    known("lost_sums_not_recalled", HOST),
    known("rows_of_the_last_round", HOST),
    known("places_not_compared", HOST),
    known("body_not_checked", HOST),
    known("last_fragment_dropped", HOST),
    known("the_living_are_named", BARRIER),
    known("done_not_said_again", BARRIER),
    known("scales_may_differ", BARRIER, misfits=True),
    known("installed_once", CONTROLLER),
    known_program("carry_between_lanes", "lanes carry into each other"),
    known_program("forget_sources", "no source is remembered"),
    known_program("overwrite_by_stale", "an older contribution overwrites a slot"),
    known_program("believe_checksums", "no checksum is compared"),
    known_program("count_repeated_done", "a `done` that is repeated counts as another"),
    known_program("release_nothing", "a fetch does not release its slot"),
    known_program("forget_newer_groups", "a late feature takes a newer group's count"),
    known_program("let_any_tag_in", "what is out of turn is taken", misfits=True),
    known_program("agree_with_all", "workers may go on with different blocks", misfits=True),
    known_program("take_every_pulse", "a worker reports the pulses of all"),
    known_program("begin_without_the_opening", "early features take the place of the opening"),
    known_program("forget_the_width", "wide frames lose lanes when they go around"),
    known_program("forget_the_level", "a leaf sends parts at a wrong level", topology=LEAF_SPINE),
    known_program("ask_no_leaf", "a spine asks no leaf for its part", topology=LEAF_SPINE),
    known_program("keep_the_part", "a leaf does not send a part again", topology=LEAF_SPINE),
    known_program("report_as_a_worker", "a leaf reports as its worker", topology=LEAF_SPINE),
    known_plan("drop_a_contribution", "a slot gets a stranger's contribution"),
    known_plan("add_one_twice", "a slot gets one contribution twice, another not at all"),
    known_plan("swap_two_destinations", "two slots of one worker change names"),
    known_plan("refuse_a_partial_sum", "a partial sum is not awaited of its sender"),
    known_plan("give_a_partial_sum_to_another", "a partial sum is taken for another's"),
    # --- new ones
    in_text(
        "own_scale",
        HOST,
        "a worker scales with its own largest feature",
        "host/innetwork/exchange.py",
        "kept or self._scales.choose(self._round, largest, lasting=lasting)\n",
        "kept or self._scales.choose(\n"
        "            self._round, type(largest)(work.own, largest.worker), lasting=lasting\n"
        "        )\n",
    ),
    in_text(
        "never_fetched",
        HOST,
        "what a switch cannot complete is never fetched",
        RECEIVER,
        "            self._start_fetching(place, doubt)\n        return False",
        "            doubt.fetching = False\n        return False",
    ),
    in_text(
        "silent_in_a_block",
        BARRIER,
        "who is in a block does not repeat that it was done",
        BLOCK,
        "            if asked or now > beat_at:",
        "            if asked and now < 0.0:",
    ),
    in_text(
        "any_acknowledgement",
        HOST,
        "an acknowledgement of a part is one of the group",
        SENDER,
        "        if count < size:\n",
        "        if count < 0:\n",
    ),
    in_text(
        "groups_not_sent_again",
        HOST,
        "a group that came short is not sent again",
        SENDER,
        "            self._repeat(group)\n",
        "",
    ),
    in_text(
        "never_asked_again",
        HOST,
        "no acknowledgement is asked for again",
        SENDER,
        "        if now < self._nothing_late_before:\n",
        "        if now:\n",
    ),
    in_text(
        "no_window",
        HOST,
        "any number of features may be in flight",
        "host/congestion.py",
        "        room = int(self.window) - in_flight\n",
        "        room = 64\n",
    ),
    in_text(
        "groups_without_end",
        HOST,
        "more groups are under way than the switch tells apart",
        SENDER,
        "_GROUPS_APART = 32\n",
        "_GROUPS_APART = 1 << 20\n",
    ),
    in_text(
        "one_neighbour_left_out",
        HOST,
        "a sum of fetched features lacks the first one",
        RECEIVER,
        "        for source in self._schedule.neighbours_of(place):\n            total",
        "        for source in self._schedule.neighbours_of(place)[1:]:\n            total",
    ),
    in_text(
        "repeats_counted",
        HOST,
        "a sum that comes twice counts as another",
        RECEIVER,
        "        if not self._awaited[place]:\n            self._counters.repeated += 1\n"
        "            return False\n        if place in",
        "        if place in",
    ),
    in_text(
        "fetched_once",
        HOST,
        "a fetch that is lost is not repeated",
        RECEIVER,
        "        for key in doubt.awaited:\n            self._send(",
        "        for key in ():\n            self._send(",
    ),
    in_text(
        "first_fragment_served",
        HOST,
        "a fetch of any fragment is answered with the first",
        OUTGOING,
        "        lanes = self.lanes.get(request.fragment)\n        return",
        "        lanes = next(iter(self.lanes.values()))\n        return",
    ),
    in_text(
        "early_sums_kept_for_ever",
        HOST,
        "what came early is taken, and never forgotten",
        "host/innetwork/responder.py",
        "        self._kept.clear()\n",
        "",
    ),
    in_text(
        "receivers_kept",
        HOST,
        "a worker keeps all blocks that it has done",
        BLOCK,
        "        self._drive(_Fragment(place, sender, receiver, sieve, opening))\n",
        "        self.__dict__.setdefault('_all', []).append(receiver)\n"
        "        self._drive(_Fragment(place, sender, receiver, sieve, opening))\n",
    ),
    in_text(
        "sessions_not_compared",
        HOST,
        "a worker takes what is of another session",
        "host/innetwork/responder.py",
        "        if header.session != self._session and",
        "        if header.session < 0 and",
    ),
    in_text(
        "last_block_of_a_vertex",
        HOST,
        "of a vertex in several blocks the last sum stands",
        "host/innetwork/exchange.py",
        "[self._schedules[step.block - 1].receive_row] += received",
        "[self._schedules[step.block - 1].receive_row] = received",
    ),
    in_text(
        "own_capacity",
        HOST,
        "what a worker foresees has the scale of its own features",
        EXCHANGE,
        "largest.bits)\n        return _Started(fixed_point, magnitude, ",
        "work.own)\n        return _Started(fixed_point, magnitude, ",
    ),
    in_text(
        "too_large_features_sent",
        HOST,
        "features that outgrow a foreseen scale are sent nevertheless",
        EXCHANGE,
        "        if magnitude_from_bits(work.own) <= limit:\n",
        "        if limit:\n",
    ),
    in_text(
        "void_sums_used",
        HOST,
        "the sums of a void round are taken for those of the next one",
        EXCHANGE,
        "            self._give_up(first)\n            return None\n",
        "            self._give_up(first)\n            begun = self._start(work)\n"
        "            received = locals().get('received')\n"
        "            return replace(begun, received=received)\n",
    ),
    in_text(
        "void_rounds_not_left",
        HOST,
        "features that came too early are waited for in a void round",
        "host/innetwork/barrier.py",
        "magnitude_from_bits(self.largest.bits) > self._capacity",
        "magnitude_from_bits(self.largest.bits) < 0",
    ),
    in_text(
        "reported_before_the_opening",
        BARRIER,
        "an early block is reported before its round is open",
        BLOCK,
        "self.receiver.done and self.open\n",
        "self.receiver.done\n",
    ),
    in_text(
        "waiting_is_enough",
        BARRIER,
        "who hears who is missing goes on",
        MEETING,
        "        if header.kind is Kind.WAITING:\n",
        "        if header.kind is Kind.WAITING and self.place[1] == OPENING_BLOCK:\n",
    ),
    in_text(
        "done_said_once",
        BARRIER,
        "a `done` is not repeated until it is answered",
        HOST_BARRIER,
        "        self._link.send(self._done(self._last))\n        meeting",
        "        if meeting.repeat_at < 0:\n            self._link.send(self._done(self._last))\n"
        "        meeting",
    ),
    in_text(
        "own_magnitude",
        BARRIER,
        "later `done`s say the worker's own magnitude",
        HOST_BARRIER,
        "        self._magnitude = agreed\n",
        "",
    ),
    in_text(
        "earlier_advances_taken",
        BARRIER,
        "an ADVANCE of an earlier block is enough",
        HOST_BARRIER,
        "(Kind.ADVANCE, Kind.WAITING) or here != meeting.place:",
        "(Kind.ADVANCE, Kind.WAITING) or here > meeting.place:",
    ),
    in_text(
        "late_answers_end_a_worker",
        BARRIER,
        "an answer of an older session ends a worker",
        HOST_BARRIER,
        "& SESSION_MASK <= _NEWER:\n",
        "& SESSION_MASK >= 0:\n",
    ),
    in_text(
        "no_pulse",
        BARRIER,
        "the pulse of a worker never changes",
        "host/innetwork/refusals.py",
        "self._bit, self._changed = not self._bit, now",
        "self._bit, self._changed = True, now",
    ),
    in_text(
        "session_taken_again",
        CONTROLLER,
        "a new session has the number of the last one",
        "controller/install.py",
        "max(entry.session for entry in present) + 1",
        "max(1, max(entry.session for entry in present))",
    ),
    in_text(
        "turns_not_forgotten",
        CONTROLLER,
        "a switch that restarted is said to know its turn",
        "controller/install.py",
        "if here.session == serving else 1",
        "if here.session == serving else 0",
    ),
    in_text(
        "session_not_remembered",
        CONTROLLER,
        "who installs again does not know the session",
        "controller/watch.py",
        "        self._session = report.session\n",
        "",
    ),
    in_text(
        "one_member_left_out",
        CONTROLLER,
        "the barrier does not wait for the last worker",
        "controller/controls/session.py",
        "            sum(plan.members),",
        "            sum(plan.members[:-1]),",
    ),
    in_text(
        "ports_swapped",
        CONTROLLER,
        "sums leave for the next worker",
        "controller/controls/loop.py",
        '"port": ports[switch.result_worker],\n            "group"',
        '"port": np.roll(ports, 1)[switch.result_worker],\n            "group"',
    ),
    in_program("any_session", "packets of other sessions are taken"),
    in_program("any_process", "another process of a worker is let into the round"),
    in_program("stale_is_new", "late features of earlier blocks are let through"),
    in_program("duplicate_is_new", "a feature that comes twice is let through twice"),
    in_program("slots_without_tag", "a slot keeps what was in it under an older tag"),
    in_program("barrier_without_tag", "who was done with the last block is done with this"),
    in_program("acknowledge_what_comes", "a feature of a group counts each time it comes"),
    in_program("acknowledge_one_more", "all acknowledgements are for eight features"),
    in_program("recall_adds", "a recall counts as a contribution"),
    in_program("nobody_has_the_maximum", "the first magnitude of a round is the largest"),
    in_program("stop_at_the_first_sum", "a feature ends at the first slot it completes"),
    in_program("next_turn_at_once", "the first `done` of a block is that of all"),
    in_program("missing_without_count", "a switch says of every slot that it is empty"),
    in_program("tag_without_round", "tags are without the round"),
    in_program("tag_without_fragment", "tags are without the fragment"),
    # --- all-reduces
    known_program(
        "forget_contributors", "a contribution that comes twice is added twice", reduces=True
    ),
    known_program(
        "begin_older_fragments", "a late contribution takes the slot of a newer one", reduces=True
    ),
    known_program(
        "forget_exponents", "the last contribution's exponent is that of all", reduces=True
    ),
    known_program(
        "reduce_as_a_worker",
        "a leaf's sum of all goes up as its worker's",
        topology=LEAF_SPINE,
        reduces=True,
    ),
    of_reduces(
        "all_slots_in_flight",
        "a worker sends as many fragments ahead as there are slots",
        "pipeline.py",
        "max(1, len(sums.awaited) // 2)",
        "len(sums.awaited)",
    ),
    of_reduces(
        "overdue_sums_not_asked_for",
        "a fragment whose sum is overdue is not sent again",
        "pipeline.py",
        "        if len(late):\n            self.repeat(late, now)\n",
        "",
    ),
    of_reduces(
        "any_sum_taken",
        "a sum that is not awaited is taken",
        "stream.py",
        "        elif flow is None or not flow.sums.awaits(number_of(header)):\n",
        "        elif flow is None:\n",
    ),
    of_reduces(
        "lost_sums_not_asked_for",
        "no worker asks for a sum that the switch has lost",
        "stream.py",
        "        if not flow.pipeline.in_flight or flow.timers.tries(base) < 2:\n",
        "        if now:\n",
    ),
    of_reduces(
        "questions_not_answered",
        "no worker answers the question for a sum",
        "stream.py",
        "        if held is None or now - ",
        "        if now or held is None or now - ",
    ),
    of_reduces(
        "answers_of_worker_0",
        "all answers are in the name of worker 0",
        "stream.py",
        "        own = header._replace(src_id=self._worker)\n",
        "        own = header\n",
    ),
    of_reduces(
        "idle_without_pulse",
        "a worker that computes gives no sign of life",
        "stream.py",
        "        if now >= self._pulse_at:\n",
        "        if now >= self._pulse_at and flow.pipeline.in_flight:\n",
    ),
    of_reduces(
        "pulses_not_heeded",
        "the pulses of others are not heeded",
        "patience.py",
        "contributed | own, pulses, now",
        "contributed | own, 0, now",
    ),
    of_reduces(
        "scale_without_workers",
        "the scale leaves no room for rounding",
        "scale.py",
        "2.0 ** (31 - self.workers.bit_length()) / ",
        "2.0 ** (31 - (self.workers - 1).bit_length()) / ",
    ),
    of_reduces(
        "rest_at_the_wrong_scale",
        "the second words are twice as large as they count",
        "scale.py",
        "steps *= self.finer",
        "steps *= 2 * self.finer",
    ),
    of_reduces(
        "own_exponent",
        "a worker scales a group of floats by its own exponent",
        "reduction.py",
        "code = int(sums.codes[number & self._slots - 1])",
        "code = self._code(group)",
    ),
    of_reduces(
        "next_group_not_told",
        "each group is sent with its own exponent",
        "reduction.py",
        "self._code(group + 1))\n        return limit",
        "self._code(group))\n        return limit",
    ),
    # --- caches
    of_caches(
        "sent_at_another_scale",
        "what was sent at a scale that is over counts as sent",
        OUTGOING,
        "        self.fixed_point, self.sums = None, None\n        self.sent.clear()\n",
        "        self.fixed_point = None\n",
    ),
    of_caches(
        "own_largest_renews",
        "a worker renews its scale by its own largest feature",
        EXCHANGE,
        "            if not work.cache.fits(started.largest):\n",
        "            if not work.cache.fits(magnitude_from_bits(work.own)):\n",
    ),
    of_caches(
        "small_changes_lost",
        "a change that is too small to send counts as sent",
        OUTGOING,
        "np.where(moved[:, np.newaxis], rows, sent)",
        "rows",
    ),
    of_caches(
        "changes_sent_twice",
        "what was sent of a row stays what it was",
        OUTGOING,
        "        self.sent = dict(rows.cached)\n",
        "        self.sent = self.sent or dict(rows.cached)\n",
    ),
    of_caches(
        "each_row_stands_for_all",
        "each row of a partial sum is fetched with the change of the whole",
        OUTGOING,
        "lanes[frame] if row == first else np.zeros_like(lanes[frame])",
        "lanes[frame]",
    ),
    of_caches(
        "fetched_for_all_sums",
        "a change that was fetched for one sum serves others",
        EXCHANGE,
        "compression.active, compression.cache\n",
        "compression.active, False\n",
    ),
)
