"""Mistakes that change the compiled program (p4c's JSON, parsed) in place; a case notices each."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from switchgnn.p4src import Program
from tests.planted.planting import (
    accept,
    actions,
    changed_program,
    constant,
    constants,
    egress,
    ingress,
    nodes,
    operations,
)
from tests.ptf.switchgnn_ptf.tofino import TOFINO

Json = Any
Mistake = Callable[[Json], None]
MISTAKES: dict[str, Mistake] = {}
NOTICED_BY: dict[str, str] = {}
NOTICED_ON: dict[str, str] = {}
_LANES = 32
_ZERO = {"type": "hexstr", "value": "0x0"}


def noticed_by(case: str, setting: str = "") -> Callable[[Mistake], Mistake]:
    """Register a mistake, the case that must notice it, and the setting if it is not the usual."""

    def register(mistake: Mistake) -> Mistake:
        MISTAKES[mistake.__name__], NOTICED_BY[mistake.__name__] = mistake, case
        if setting:
            NOTICED_ON[mistake.__name__] = setting
        return mistake

    return register


@noticed_by("banks.EveryLaneWraps")
def carry_between_lanes(compiled: Json) -> None:
    """Add the 1,024 bits as one number, without the masks of PACKED_ADD."""
    rests, tops = "0x" + "7fffffff" * _LANES, "0x" + "80000000" * _LANES
    for value in constants(compiled["actions"]):
        if value["value"] == rests:
            value["value"] = "0x" + "ffffffff" * _LANES
        elif value["value"] == tops:
            value["value"] = "0x" + "00000000" * _LANES


@noticed_by("banks.EveryLaneHasTheLarger")
def compare_the_rests_alone(compiled: Json) -> None:
    """Let PACKED_MAX leave out the top bits where the others decide."""
    for found in operations(actions(compiled, ".add_to_slots"), "|"):
        if "addend" in json.dumps(found):
            found.update(found["right"]["value"])


@noticed_by("dedup.RepeatedAtOnce")
def forget_sources(compiled: Json) -> None:
    """Let Seen write back the tag it read, so that nothing is ever a duplicate."""
    action = _action(compiled, "SwitchIngress.dedup.look_and_remember")
    write = next(step for step in action["primitives"] if step["op"] == "register_write")
    write["parameters"][2] = {"type": "field", "value": ["scalars", "dedup_last"]}


@noticed_by("congestion.AnyMarkStaysInTheSlot")
def forget_earlier_marks(compiled: Json) -> None:
    """Let the mark of the last contribution overwrite that of the slot."""
    for found in operations(actions(compiled, ".add_to_slots"), "|"):
        if "switchgnn" in json.dumps(found["right"]) and "ecn" in json.dumps(found["right"]):
            found["left"] = _ZERO


@noticed_by("banks.StaleContributionChangesNothing")
def overwrite_by_stale(compiled: Json) -> None:
    for comparison in operations(actions(compiled, ".add_to_slots"), ">"):
        if "content" in json.dumps(comparison["left"]):
            comparison["left"] = _ZERO


@noticed_by("checksum.EveryByteOfAFeatureIsChecked")
def believe_checksums(compiled: Json) -> None:
    compiled["checksums"] = [check for check in compiled["checksums"] if not check["verify"]]


@noticed_by("barrier.RepeatedDoneIsCountedOnce")
def count_repeated_done(compiled: Json) -> None:
    """Add worker bits instead of or-ing them, so that a repeated DONE counts as another."""
    for operation in operations(_action(compiled, "SwitchIngress.barrier.collect"), "|"):
        operation["op"] = "+"


@noticed_by("recovery.ReleasedSlotNeverCompletes")
def release_nothing(compiled: Json) -> None:
    """Let a fetch touch its slot with a count of 0, as a recall does."""
    for action in compiled["actions"]:
        if action["name"] == "SwitchIngress.access.recovery.touch":
            for value in constants(action):
                if value["value"] == "0xffff":
                    value["value"] = "0x0000"


@noticed_by("dedup.OlderGroupChangesNothing")
def forget_newer_groups(compiled: Json) -> None:
    """Let a delayed packet of an older group take the place of a newer one's count."""
    for comparison in operations(_action(compiled, "SwitchIngress.accepted.count_group"), ">"):
        comparison["left"] = _ZERO


@noticed_by("shelf.FirstComeFirstServed")
def add_what_overflows(compiled: Json) -> None:
    """Let an overflowed feature leave as a sum."""
    for action in actions(compiled, ".overflow"):
        action["primitives"] = [
            step
            for step in action["primitives"]
            if "overflow" not in step["parameters"][0]["value"][-1]
        ]


@noticed_by("shared.ANewerTagTakesTheSlotOfItsJob")
def add_to_the_slot_of_another(compiled: Json) -> None:
    """Let a destination add to its slot after another one has taken it over."""
    for action in actions(compiled, ".find_shared"):
        steps = action["primitives"]
        none = {"type": "hexstr", "value": "0x000000"}
        lost = next(n for n, step in enumerate(steps) if step["parameters"][-1] == none)
        # The slot, of the other branch.
        steps[lost]["parameters"][-1] = steps[lost - 2]["parameters"][-1]


@noticed_by("access.PartOfASumGoesUp")
def forget_the_level(compiled: Json) -> None:
    """Let a partial sum go up with the level of its last feature."""
    action = _action(compiled, "SwitchEgress.rewrite.make_partial")
    action["primitives"] = [
        step
        for step in action["primitives"]
        if step["parameters"][0]["value"] != ["switchgnn", "level"]
    ]


@noticed_by("session.LeafReportsWhenItsWorkersAreDone")
def report_as_a_worker(compiled: Json) -> None:
    """Let a leaf pass the last DONE up as it is, in the name of its worker."""
    for step in _action(compiled, "SwitchIngress.barrier.report")["primitives"]:
        to = step["parameters"][0]
        if to["value"] == ["switchgnn", "src_id"]:
            step["parameters"][1] = to


@noticed_by("barrier.OnlyItsOwn")
def take_every_heartbeat(compiled: Json) -> None:
    """Take the heartbeats of all workers from any sender."""
    for node in nodes(_action(compiled, "SwitchIngress.barrier.heartbeat.keep")):
        if "worker_bit" in str(node.get("value")) and node.get("type") == "field":
            node.update(type="hexstr", value="0x" + "f" * 32)


@noticed_by("width.SeveralHopsOfAWideFrame")
def forget_the_width(compiled: Json) -> None:
    """Let slots be narrow in all passes of a packet but the first."""
    for fields in compiled["field_lists"]:
        fields["elements"] = [
            element for element in fields["elements"] if "last_of_row" not in str(element["value"])
        ]


@noticed_by("window.FeaturesComeWhileTheirRoundIsOpened")
def let_nothing_in_early(compiled: Json) -> None:
    """Let features wait for their barrier, even if the last `done`s announce them."""
    for writes in _tags_of_window(compiled):
        writes["feature_tag"]["parameters"][2] = writes["barrier_tag"]["parameters"][2]


@noticed_by("window.TheOpeningComesBeforeTheBlock")
def begin_without_the_opening(compiled: Json) -> None:
    """Let the window skip the start of a round whose features come early."""
    for action in compiled["actions"]:
        if action["name"] == "SwitchIngress.barrier.move_window":
            early = action["primitives"][-1]["parameters"]
            barrier = [{"type": "register_array", "value": "SwitchIngress.barrier_tag"}, *early[1:]]
            action["primitives"].append({**action["primitives"][-1], "parameters": barrier})


@noticed_by("pools.UnitsOfTwoPoolsAreInFlight")
def share_the_slots(compiled: Json) -> None:
    """Let all pools have the slots of the first one."""
    action = _action(compiled, "SwitchIngress.session.set_session")
    action["primitives"] = [step for step in action["primitives"] if "first_slot" not in str(step)]


@noticed_by("pools.AnOlderUnitIsNotStale")
def share_the_last_tags(compiled: Json) -> None:
    """Let Dedup keep one tag of each source for all pools."""
    (index,) = {
        node["value"][1]
        for node in nodes(_action(compiled, "SwitchIngress.dedup.look_and_remember"))
        if node.get("type") == "field" and "source_index" in str(node["value"])
    }
    for step in _action(compiled, "SwitchIngress.dedup.look_and_remember")["primitives"]:
        if step["op"].startswith("register"):
            at = {"register_read": 2, "register_write": 1}[step["op"]]
            step["parameters"][at] = {"type": "field", "value": ["scalars", index]}


@noticed_by("reduce.RepeatedContributionIsAddedOnce")
def forget_contributors(compiled: Json) -> None:
    """Let a slot forget who has contributed, so that repetitions are added."""
    _leave_out(compiled, "SwitchIngress.reduce.look", "SwitchIngress.reduce.contributors")


@noticed_by("reduce.LateContributionChangesNothing")
def begin_older_fragments(compiled: Json) -> None:
    """Let a late contribution take the slot of a newer fragment."""
    for comparison in operations(ingress(compiled)["conditionals"], ">"):
        if "reduce_tag" in json.dumps(comparison["left"]):
            comparison["left"] = _ZERO


@noticed_by("reduce.TheLargestExponentIsTold")
def forget_exponents(compiled: Json) -> None:
    """Let the last contribution's exponent be that of all."""
    _leave_out(compiled, "SwitchIngress.reduce.look", "SwitchIngress.reduce.exponents")


@noticed_by("narrow.WideAndNarrowMeetInOneSlot")
def keep_the_bias(compiled: Json) -> None:
    """Let Widen add the numbers of 8 and 16 bits with their bias."""
    for value in constants(actions(compiled, "")):
        for bias in ("7fff8000", "7fffff80"):
            value["value"] = value["value"].replace(bias, "80000000")


@noticed_by("narrow.TheFewestBitsThatHoldTheSum")
def forget_the_sign(compiled: Json) -> None:
    """Let a sum fit if its magnitudes do without a bit for their sign."""
    for value in constants(egress(compiled)["conditionals"]):
        if value["value"] == "0x" + "ffff0000" * _LANES:
            value["value"] = "0x" + "fffe0000" * _LANES


@noticed_by("narrow.NoSuchBits")
def take_any_bits(compiled: Json) -> None:
    """Let Admission take packets whose bits their width cannot have."""
    for comparison in operations(ingress(compiled)["conditionals"], ">"):
        if "width" in json.dumps(comparison["left"]):
            comparison.update(op=">=", right=_ZERO)


@noticed_by("job.ABlockOfTheNeighbourIsUnknown")
def forget_the_last_block(compiled: Json) -> None:
    """Let a job name blocks beyond its last one, which are those of a neighbour."""
    for comparison in operations(_action(compiled, "SwitchIngress.job.set_job"), "<="):
        comparison["right"] = constant(0xFFFF)


@noticed_by("job.AFetchReleasesTheOwnSlot")
def take_workers_for_the_first_ones(compiled: Json) -> None:
    """Let the cells of a job's workers be those of the first workers of the switch."""
    for addition in operations(_action(compiled, "SwitchIngress.job.set_job"), "+"):
        if "_worker" in json.dumps(addition["left"]):
            addition["right"] = _ZERO


@noticed_by("banks.SlotIsReusedWithoutClearing", TOFINO)
def add_to_older_sums(compiled: Json) -> None:
    """Let the first lanes under a newer tag be added to those of the slot."""
    for action in compiled["actions"]:
        if ".keep_set" in action["name"]:
            adding = _action(compiled, action["name"].replace("keep_set", "keep_add"))
            action["primitives"] = adding["primitives"]


@noticed_by("banks.CompletionInTheMiddle", TOFINO)
def harvest_nothing(compiled: Json) -> None:
    """Let a sum that completes before the last hop stay in its slot."""
    for comparison in operations(ingress(compiled)["conditionals"], "=="):
        if "_completed" in json.dumps(comparison["left"]):
            comparison["left"] = _ZERO


@noticed_by("barrier.LastDoneAdvancesAll", TOFINO)
def forget_dones(compiled: Json) -> None:
    """Let each `done` find no other one."""
    collected = "SwitchIngress.port.collected."
    _leave_out(compiled, f"{collected}add_to_lower", f"{collected}collected_lower")


@noticed_by("reduce.TheLargestExponentIsTold", TOFINO)
def tell_the_last_exponent(compiled: Json) -> None:
    """Let a part of a fragment keep its exponent, whatever those before it had."""
    _empty(compiled, "SwitchIngress.port.contributors.raise")


@noticed_by("loop.MissingBringsThePartAgain", TOFINO)
def send_no_part_again(compiled: Json) -> None:
    """Let a MISSING from above find the part, and not bring it up."""
    _empty(compiled, "SwitchIngress.pass.answer.send_part")


def _share(compiled: Json, part: str, number: int) -> None:
    """Give all jobs the same part."""
    own = [*actions(compiled, "job.set_job"), *actions(compiled, "job.find_parts")]
    (name,) = {
        node["value"][1]
        for node in nodes(own)
        if node.get("type") == "field" and re.fullmatch(rf"\D+_{part}\d+", node["value"][1])
    }
    field = {"type": "field", "value": ["scalars", name]}
    step = {"op": "assign", "parameters": [field, constant(number)]}
    own[-1]["primitives"].append(step)


def _empty(compiled: Json, action: str) -> None:
    _action(compiled, action)["primitives"] = []


# Refusals that the switch ignores: outcomes, and who must notice.
for _name, _outcome, _case in (
    ("let_any_tag_in", "0x17", "window.LaterPacketsAreRefused"),
    ("agree_with_all", "0x18", "window.WorkersMustAgreeOnWhatIsNext"),
    ("believe_any_process", "0x15", "barrier.AnotherProcessIsRefused"),
):
    MISTAKES[_name], NOTICED_BY[_name] = partial(accept, outcome=_outcome), _case

# Parts that all jobs share: those of the first one.
for _name, _part, _number, _case in (
    ("reach_the_neighbours_slots", "first_slot", 0, "job.SumsAreSeparate"),
    ("reach_the_neighbours_sources", "first_source", 0, "job.AcknowledgementsAreSeparate"),
    ("reach_the_neighbours_barrier", "own_pool", 4, "job.BarriersAreSeparate"),
    ("reach_the_neighbours_round", "own_cell", 1, "job.BarriersAreSeparate"),
    ("reach_the_neighbours_shelves", "first_worker", 0, "job.BundlesAreSeparate"),
    ("reach_the_neighbours_group", "own_groups", 2, "job.ANoticeStaysInTheJob"),
    ("reach_the_neighbours_fragments", "first_reduce", 0, "job.AllReducesAreSeparate"),
    ("count_frames_as_the_neighbours", "first_outcome", 32, "job.TheLoopStaysInTheJob"),
    ("count_passes_as_the_neighbours", "first_passes", 16, "job.TheLoopStaysInTheJob"),
):
    MISTAKES[_name], NOTICED_BY[_name] = partial(_share, part=_part, number=_number), _case

# Actions that do nothing.
for _name, _action_name, _case in (
    ("ask_no_leaf", "SwitchIngress.answer.recall_parts", "loop.RecallOfTheIncomplete"),
    ("keep_the_part", "SwitchIngress.answer.send_part", "loop.MissingBringsThePartAgain"),
    ("reduce_as_a_worker", "SwitchEgress.rewrite.make_reduce", "reduce.LeafOfReduce"),
):
    MISTAKES[_name], NOTICED_BY[_name] = partial(_empty, action=_action_name), _case


def with_mistake(program: Program, name: str) -> Program:
    return changed_program(program, name, MISTAKES[name])


def _leave_out(compiled: Json, action: str, register: str) -> None:
    """Take the accesses to a register out of all copies of an action."""
    for each in compiled["actions"]:
        if each["name"] == action:
            each["primitives"] = [
                step
                for step in each["primitives"]
                if not any(register == parameter.get("value") for parameter in step["parameters"])
            ]


def _action(compiled: Json, name: str) -> Json:
    return next(action for action in compiled["actions"] if action["name"] == name)


def _tags_of_window(compiled: Json) -> Iterator[dict[str, Json]]:
    """Yield the steps that write the two tags; p4c copies the action for each call."""
    for action in compiled["actions"]:
        if action["name"] == "SwitchIngress.barrier.move_window":
            steps = [step for step in action["primitives"] if step["op"] == "register_write"]
            yield {step["parameters"][0]["value"].split(".")[-1]: step for step in steps}
