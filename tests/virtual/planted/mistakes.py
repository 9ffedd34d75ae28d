"""Mistakes that exchanges in virtual time find, each with the seed of a scenario that does."""

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

from switchgnn.p4src import load_program
from tests.planted.mistakes import MISTAKES as IN_THE_TREE
from tests.planted.planting import actions, changed_program, constant, nodes, text_replaced
from tests.ptf.switchgnn_ptf.mistakes import MISTAKES as IN_PROGRAMS
from tests.simulation.draw import Wish
from tests.simulation.scenario import Incident, IncidentKind, Scenario, Tensor
from tests.simulation.soak import Soak

STAR, LEAF_SPINE = Wish(), Wish(2, 1)
# Each scenario has a Byzantine worker; all-reduces; fewer bits or caches.
BYZANTINE, REDUCES, COMPRESSED = Wish(byzantine=True), Wish(reduces=True), Wish(compression=True)
CUT = Wish(cut=True)
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

    @contextmanager
    def planted(self):
        """Yield a soak of exchanges with the mistake."""
        wish = replace(self.wish, backend="python") if self.in_program else self.wish
        with text_replaced(*self.text) if self.text else nullcontext():
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


def known(name, what, seed, wish=STAR):
    mistake = next(each for each in IN_THE_TREE if each.what == what)
    return Planted(name, seed, wish, text=(mistake.file, mistake.old, mistake.new))


def known_program(name, seed, wish=STAR):
    return Planted(name, seed, wish, in_program=IN_PROGRAMS[name])


# Two jobs alike, of which the first has a Byzantine worker, without bundles and with them.
_JOB = Scenario(seed=1, graph="random:20:30:1", workers=2, rounds=4, backend="python")
TWO_JOBS = replace(
    _JOB,
    second=replace(_JOB, seed=2),
    second_first=True,
    incidents=(Incident(IncidentKind.BYZANTINE, "w1", 500, 0.02),),
)
_BUNDLED = replace(_JOB, seed=2, graph="random:60:150:1", rows=2, slots=8, send="cover")
# The first job is killed, and otherwise the last one on the shelf.
BUNDLES = replace(
    _BUNDLED,
    rounds=8,
    second=_BUNDLED,
    second_first=True,
    incidents=(Incident(IncidentKind.KILL, "w1", 300),),
)
_REDUCING = replace(_JOB, seed=2, reduces=(Tensor(1_000), Tensor(300)))
REDUCING = replace(TWO_JOBS, reduces=_REDUCING.reduces, second=_REDUCING)


def as_of_job_1(name, field, old, scenario=TWO_JOBS):
    """Return a mistake in job.p4: all jobs have a part that job 1 has, whose beginning is a field.

    `old`: the number of the job there, or the parameter of its entry.
    """

    def change(compiled):
        found = [*actions(compiled, "job.set_job"), *actions(compiled, "job.find_parts")]
        steps = [step["parameters"] for action in found for step in action["primitives"]]
        values = [each[1] for each in steps if field in str(each[0]["value"])]
        for node in nodes(values):
            if node.get("type") in ("field", "runtime_data") and old in str(node["value"]):
                node.update(constant(int(node["type"] == "field")))

    return Planted(name, scenario, in_program=change)


def in_file(file, *mistakes):
    """Return mistakes in the text of a file: name, seed, old and new text, and any other wish."""
    return [
        Planted(name, seed, *wish, text=(file, old, new))
        for name, seed, old, new, *wish in mistakes
    ]


BARRIER = "host/innetwork/barrier.py"
ROUND, OUTGOING = "host/innetwork/round.py", "host/innetwork/outgoing.py"
RECEIVER, RESPONDER = "host/innetwork/receiver.py", "host/innetwork/responder.py"
SENDER, UNITS = "host/innetwork/sender.py", "host/innetwork/units.py"

MISTAKES = (
    known("lost_sums_not_recalled", "a sum that does not come is never asked for", 1),
    known(
        "rows_of_the_last_round", "a worker answers fetches with the rows of the round before", 9
    ),
    known("body_not_checked", "the checksum of what the switch sends is not compared", 6),
    known("last_fragment_dropped", "the last of several fragments of a row is not exchanged", 1),
    known("the_living_are_named", "who waits in vain names those that are done", 18),
    known("done_not_said_again", "who is through does not repeat that it was done", 57),
    known("installed_once", "a switch that restarts is not given its plan again", 2),
    known(
        "small_changes_taken_for_sent",
        "a change that was too small to send counts as sent",
        5,
        COMPRESSED,
    ),
    known(
        "each_row_stands_for_all",
        "each row of a partial sum is fetched with the change of the whole",
        1,
        COMPRESSED,
    ),
    known("sums_for_masters", "of the replicas of a vertex only the master gets their sum", 4, CUT),
    known("masters_left_out", "the sum of the replicas of a vertex leaves out the master", 4, CUT),
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
    known_program("begin_without_the_opening", 5),
    known_program("forget_the_width", 13),
    known_program("forget_the_level", 1, LEAF_SPINE),
    known_program("keep_the_part", 6, LEAF_SPINE),
    known_program("report_as_a_worker", 2, LEAF_SPINE),
    known_program("forget_contributors", 1, REDUCES),
    known_program("begin_older_fragments", 6, REDUCES),
    known_program("forget_exponents", 1, REDUCES),
    known_program("reduce_as_a_worker", 1, REDUCES_OF_LEAVES),
    as_of_job_1("barriers_of_a_neighbour", "own_pool", "own_job"),
    as_of_job_1("rounds_of_a_neighbour", "own_cell", "own_job"),
    as_of_job_1("sums_of_a_neighbour", "own_first_reduce", "own_job", REDUCING),
    as_of_job_1("group_of_a_neighbour", "own_groups", "own_job"),
    as_of_job_1("shelf_of_a_neighbour", "loop_first_worker", "8", BUNDLES),
    *in_file(
        "controller/controls/job.py",
        (
            "slots_of_a_neighbour",
            TWO_JOBS,
            'values["name"] = ',
            'values["first_slot"] = 0\n        values["name"] = ',
        ),
    ),
    *in_file(
        ROUND,
        (
            "own_scale",
            0,
            "self.number, largest, lasting=lasting",
            "self.number, type(largest)(self._rows.own, largest.worker), lasting=lasting",
        ),
        ("last_block_of_a_vertex", 8, "(so_far[rows], sums.view", "(0, sums.view"),
        ("void_rounds_not_left", 14, "self._largest > fixed_point.limit", "self._largest < 0"),
    ),
    *in_file(
        UNITS,
        ("silent_in_a_block", 57, "late or now > heartbeat_at", "late and now < 0.0"),
        ("more_units_than_pools", 0, "oldest < self.pools", "oldest <= self.pools"),
        (
            "reported_out_of_order",
            1,
            "return next((unit for unit in self._in_flight if unit.meeting is None), None)",
            "left = [unit for unit in self._in_flight if unit.meeting is None]\n"
            "        return next((unit for unit in left if unit.done), next(iter(left), None))",
        ),
    ),
    *in_file(
        SENDER,
        ("any_acknowledgement", 1, "if count < size:", "if count < 0:"),
        ("groups_not_sent_again", 1, "self._repeat(group, now)", "pass"),
    ),
    *in_file(
        RECEIVER,
        ("one_neighbour_left_out", 1, "in neighbours])", "in neighbours[1:] or neighbours])"),
        (
            "repeats_counted",
            5,
            "if not self._awaited[index]:\n            self._counters.repeated += 1\n"
            "            return False\n        if index in",
            "if index in",
        ),
        ("fetched_once", 1, "key in doubt.awaited", "key in ()"),
    ),
    *in_file(
        OUTGOING,
        (
            "first_fragment_served",
            113,
            "self.lanes[in_pool(request.fragment, 0)][row]",
            "next(iter(self.lanes.values()))[row]",
        ),
        (
            "sent_at_another_scale",
            58,
            "self.fixed_point, self.sums = None, None\n        self.sent.clear()",
            "self.fixed_point = None",
            COMPRESSED,
        ),
        (
            "changes_sent_twice",
            5,
            "self.sent = dict(rows.cached)",
            "self.sent = self.sent or dict(rows.cached)",
            COMPRESSED,
        ),
    ),
    *in_file(
        RESPONDER,
        ("early_sums_kept_for_ever", 12, "self._kept.clear()", "pass"),
        ("sessions_not_compared", 237, "header.session != self._session", "header.session < 0"),
    ),
    *in_file(
        BARRIER,
        (
            "waiting_is_enough",
            1,
            "header.kind is wire.Kind.WAITING",
            "header.kind is wire.Kind.WAITING and self.unit.block == wire.OPENING_BLOCK",
        ),
        ("earlier_advances_taken", 6, "unit != meeting.unit", "unit.order > meeting.unit.order"),
    ),
    *in_file(
        "controller/target.py",
        ("turns_not_forgotten", 10, "replace(each, any_tag=1)", "replace(each, any_tag=0)"),
    ),
    *in_file(
        "controller/watch.py",
        (
            "session_not_remembered",
            10,
            "self._kept[client.address] = read_state(client, layout)",
            "pass",
        ),
    ),
    *in_file(
        "controller/controls/session.py",
        (
            "one_member_left_out",
            1,
            "            sum(plan.members),",
            "            sum(plan.members[:-1]),",
        ),
    ),
    *in_file(
        "host/reduce/stream.py",
        ("any_sum_taken", 1, " or not pipeline.sums.awaits(number_of(header))", "", REDUCES),
        ("answers_of_worker_0", 1, "header._replace(src_id=self._worker)", "header", REDUCES),
    ),
    *in_file(
        "host/reduce/timeout.py",
        ("heartbeats_not_heeded", 2, "own, heartbeats, now", "own, 0, now", REDUCES),
    ),
    *in_file(
        "host/reduce/scale.py",
        ("scale_without_workers", 2, "31 - workers.bit", "31 - (workers - 1).bit", REDUCES),
    ),
)
