"""Spin checks the models of the protocol, and finds the mistakes that are planted in them."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.speed import seconds_here

MODEL = Path(__file__).parent
ABSENT = [program for program in ("spin", "gcc") if shutil.which(program) is None]
pytestmark = pytest.mark.skipif(bool(ABSENT), reason=f"not installed: {', '.join(ABSENT)}")

NOT_EXACT = "value[slot]=="
NOT_PURE = "value[slot]& ~"
AFTER_FETCH = "!(((fetched>>"
MIXTURE = "raw[vertex]==0"
TOO_EARLY = "]>tag)||"
FALSE_PROMISE = "]>=block))||restarted"
REFUSED = "<session)||((second"
OF_ANOTHER_SESSION = "!(foreign)"
TAKES_PART_TWICE = "!(first_known)"
TAKEN_FROM_OTHERS = "]>before)||"
VOID_ROUND_USED = "!(((unfit!=3)&&((tag-"
VOID_SUM_LEFT = "assertion violated ((have&"
ANOTHER_MAXIMUM = "||heard)"
ON_SHELF_TWICE = "!(((shelved>>"
OF_ANOTHER_BLOCK = "waiting[pool]==("
BUNDLED_AFTER_FETCH = "waiting[pool]&fetched"
LEFT_ON_SHELF = "(lost+delayed)"
CIRCLE = "acceptance cycle"
SUM_OF_ANOTHER = "other==number"  # in reduce.pml

# Only that nothing goes wrong; or also that every run comes to its end.
SAFE = ("-DNOCLAIM", "-DSAFETY")
ENDS = ()


def full(*values):
    return pytest.param(*values, marks=pytest.mark.full)


@dataclass
class Verdict:
    errors: int
    states: int
    output: str


def check(folder, switches, mode, *, model="model.pml", seconds=110, optimised=False):
    """Build the checker of a model and let it search; only long searches win optimising back."""
    for file in MODEL.glob("*.pml"):
        shutil.copy(file, folder)

    limit = seconds_here(seconds)

    def run(*command):
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=limit
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("spin", "-a", *(f"-D{switch}" for switch in switches.split()), model)
    flags = ("-O1" if optimised else "-O0", "-w", "-DCOLLAPSE", "-DMEMLIM=8000", *mode)
    run("gcc", *flags, "-o", "pan", "pan.c")
    output = run("./pan", "-m100000", *(["-a"] if mode == ENDS else []))
    assert "max search depth too small" not in output
    assert "-DMEMLIM bound" not in output
    return Verdict(
        errors=int(re.search(r"errors: (\d+)", output)[1]),
        states=int(re.search(r"(\d+) states, stored", output)[1]),
        output=output,
    )


def reduce(folder, switches, mode, **options):
    return check(folder, switches, mode, model="reduce.pml", **options)


_FEW_FAULTS = (
    "LOSS=2 | LATE=1 | REPEAT=1 | LOSS=1 | LOSS=1 TOO_LATE_TRIED | RESTARTS=1 | LEAF_SPINE | "
    "LEAF_SPINE LOSS=1 | LEAF_SPINE REPEAT=1 | LEAF_SPINE RESTARTS=1 LEAVES_ONLY | "
    "NO_BLOCKS ROUNDS=2 LOSS=2 | ONE_BLOCK ROUNDS=2 LOSS=1 | ONE_BLOCK NEW_SESSION | "
    "ONE_BLOCK SECOND_PROCESS | EARLY=1 LOSS=1 | EARLY=1 ONE_BLOCK SLOW=2 | "
    "EARLY=1 BROKEN_WORKER | EARLY=2 ONE_BLOCK ROUNDS=3 | EARLY=1 LEAF_SPINE | POOLS=2 | "
    "POOLS=2 NO_BLOCKS RESTARTS=1 | POOLS=2 ONE_BLOCK LOSS=1 | BUNDLES=2 LOSS=2 | "
    "BUNDLES=4 RESTARTS=1"
)
_FEW_FAULTS_IN_TWO_POOLS = (
    "RESTARTS=1 | UNITS=3 LOSS=1 | UNITS=3 LATE=1 | UNITS=3 REPEAT=1 | EARLY=1 UNITS=3 | "
    "EARLY=1 UNITS=4 MISPREDICTED | EARLY=1 SLOW=1 | EARLY=2 ROUNDS=2 | ONE_BLOCK NEW_SESSION | "
    "SECOND_PROCESS | BUNDLES=2 UNITS=3 REPEAT=1"
)


def of_two_workers(faults):
    return [f"POOLS=2 TWO_WORKERS {each}" for each in faults.split(" | ")]


@pytest.mark.parametrize(
    "faults", ["", *_FEW_FAULTS.split(" | "), *of_two_workers(_FEW_FAULTS_IN_TWO_POOLS)]
)
def test_nothing_goes_wrong(tmp_path, faults):
    verdict = check(tmp_path, f"LOOK_INSIDE {faults}", ENDS)
    assert verdict.errors == 0, verdict.output
    assert verdict.states > 500


# Combinations of faults that only `make test-all` searches.
_IN_MANY_WAYS = (
    "LOSS=1 LATE=1 | LOSS=1 REPEAT=1 | LATE=1 REPEAT=1 | RESTARTS=1 LOSS=1 | "
    "LEAF_SPINE LATE=1 | LEAF_SPINE RESTARTS=1 | NO_BLOCKS ROUNDS=2 LOSS=1 LATE=1 | "
    "NO_BLOCKS ROUNDS=2 RESTARTS=1 LOSS=1 | NO_BLOCKS ROUNDS=4 LOSS=2 | "
    "LEAF_SPINE NO_BLOCKS ROUNDS=2 LATE=1 | ONE_BLOCK ROUNDS=2 LATE=1 | "
    "ONE_BLOCK ROUNDS=2 RESTARTS=1 | ONE_BLOCK ROUNDS=3 LOSS=1 | ROUNDS=2 LOSS=1 | "
    "ROUNDS=2 REPEAT=1 | NO_BLOCKS NEW_SESSION LOSS=1 | "
    "ONE_BLOCK NEW_SESSION TOO_LATE_TRIED | ONE_BLOCK NEW_SESSION LOSS=1 | "
    "ONE_BLOCK NEW_SESSION LATE=1 | NEW_SESSION | "
    "NO_BLOCKS ROUNDS=2 SECOND_PROCESS LOSS=1 LATE=1 | "
    "ONE_BLOCK ROUNDS=2 SECOND_PROCESS LOSS=1 | SECOND_PROCESS LOSS=1 | EARLY=1 LOSS=2 | "
    "EARLY=1 LATE=1 | EARLY=1 REPEAT=1 | EARLY=1 RESTARTS=1 | "
    "EARLY=1 ONE_BLOCK ROUNDS=2 LOSS=1 | EARLY=1 ONE_BLOCK ROUNDS=2 LATE=1 | "
    "EARLY=1 ONE_BLOCK ROUNDS=2 RESTARTS=1 | EARLY=1 ONE_BLOCK SLOW=2 LOSS=1 | "
    "EARLY=1 ONE_BLOCK SLOW=2 RESTARTS=1 | "
    "EARLY=1 ONE_BLOCK SLOW=2 QUESTIONS_EARLY SERVES_EARLY LOSS=1 | "
    "EARLY=2 ONE_BLOCK ROUNDS=3 LOSS=1 | EARLY=2 ONE_BLOCK ROUNDS=3 REPEAT=1 | "
    "EARLY=2 ONE_BLOCK ROUNDS=2 NEW_SESSION | EARLY=2 ROUNDS=2 LOSS=1 | "
    "EARLY=2 ROUNDS=2 REPEAT=1 | EARLY=1 LEAF_SPINE LOSS=1 | EARLY=1 LEAF_SPINE LATE=1 | "
    "EARLY=1 LEAF_SPINE REPEAT=1 | EARLY=1 LEAF_SPINE RESTARTS=1 | "
    "EARLY=1 LEAF_SPINE BROKEN_WORKER | EARLY=1 SECOND_PROCESS | "
    "EARLY=1 ONE_BLOCK SECOND_PROCESS LOSS=1 | POOLS=2 ONE_BLOCK RESTARTS=1 | "
    "POOLS=2 EARLY=1 | POOLS=2 EARLY=1 ONE_BLOCK LOSS=1 | POOLS=2 EARLY=1 ONE_BLOCK ROUNDS=2 | "
    "BUNDLES=2 LOSS=1 TOO_LATE_TRIED | BUNDLES=2 LOSS=1 LATE=1 | BUNDLES=4 LOSS=1 REPEAT=1 | "
    "BUNDLES=4 RESTARTS=1 LOSS=1 | BUNDLES=2 ROUNDS=2 LOSS=1 | BUNDLES=2 SECOND_PROCESS | "
    "BUNDLES=4 EARLY=1 LOSS=1 | BUNDLES=2 EARLY=2 ONE_BLOCK ROUNDS=3 LOSS=1"
)
_MANY_WAYS_IN_TWO_POOLS = (
    "LOSS=2 | UNITS=3 LOSS=1 LATE=1 | UNITS=4 LOSS=1 | UNITS=4 RESTARTS=1 | RESTARTS=1 LOSS=1 | "
    "ONE_BLOCK RESTARTS=1 LOSS=1 | ROUNDS=2 LOSS=1 | EARLY=1 UNITS=3 LOSS=1 | "
    "EARLY=1 UNITS=3 LATE=1 | EARLY=1 UNITS=3 BROKEN_WORKER | EARLY=1 RESTARTS=1 | "
    "EARLY=1 ROUNDS=2 LOSS=1 | EARLY=2 ONE_BLOCK ROUNDS=2 RESTARTS=1 | EARLY=1 SECOND_PROCESS | "
    "ROUNDS=2 SECOND_PROCESS | NO_BLOCKS NEW_SESSION LOSS=1 | ANY_ORDER UNITS=3 RESTARTS=1 | "
    "BUNDLES=2 UNITS=3 LOSS=1 | BUNDLES=4 LATE=1 | BUNDLES=2 RESTARTS=1 | BUNDLES=4 EARLY=1 LOSS=1"
)
_SAFE_IN_MANY_WAYS = (
    "RESTARTS=1 REPEAT=1 | LOSS=1 LATE=1 REPEAT=1 | LEAF_SPINE LATE=1 | LEAF_SPINE LOSS=2 | "
    "LEAF_SPINE LOSS=1 REPEAT=1"
)


@pytest.mark.full
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("faults", "mode"),
    [(each, ENDS) for each in _IN_MANY_WAYS.split(" | ")]
    + [(each, ENDS) for each in of_two_workers(_MANY_WAYS_IN_TWO_POOLS)]
    + [(each, SAFE) for each in _SAFE_IN_MANY_WAYS.split(" | ")],
)
def test_nothing_goes_wrong_in_many_ways(tmp_path, faults, mode):
    verdict = check(tmp_path, f"LOOK_INSIDE {faults}", mode, seconds=1100, optimised=True)
    assert verdict.errors == 0, verdict.output


@pytest.mark.parametrize(
    ("search", "switches", "refusals"),
    [
        (check, "LOSS=2", 1),
        (check, "LEAF_SPINE LOSS=1", 2),
        (reduce, "RESTARTS=1", 0),
        full(check, "ONE_BLOCK NEW_SESSION LOSS=1", 0),
        full(check, "ONE_BLOCK SECOND_PROCESS LOSS=1", 0),
        full(check, "EARLY=1 LOSS=2", 1),
    ],
)
def test_every_kind_of_packet_arrives(tmp_path, search, switches, refusals):
    """Some run takes each step; refusals occur only where a process restarts."""
    output = search(tmp_path, switches, SAFE).output
    never = output.split("unreached in proctype Network")[1].split("unreached in")[0]
    assert never.count("D_STEP") == refusals


@pytest.mark.parametrize(
    ("mistake", "faults", "error"),
    [
        ("NO_LAST_TAG", "REPEAT=1", NOT_EXACT),
        ("NO_LAST_TAG", "REPEAT=1 LOOK_INSIDE", NOT_PURE),
        *((mistake, "", NOT_EXACT) for mistake in ("NO_SLOT_TAG", "LEAF_SPINE NO_SPINE_SLOT_TAG")),
        ("STALE_ADDED", "LATE=1 LOSS=1", NOT_EXACT),
        ("STALE_ADDED", "LATE=1 LOOK_INSIDE", NOT_PURE),
        ("NO_RELEASE", "LATE=1", AFTER_FETCH),
        *((mistake, "LATE=1", MIXTURE) for mistake in ("ONE_TOTAL", "LEAF_SPINE ONE_TOTAL")),
        ("ONE_TOTAL NO_RELEASE SUM_AFTER_FETCH_ALLOWED", "LATE=1", MIXTURE),
        ("BARRIER_COUNTS", "REPEAT=1", TOO_EARLY),
        ("ACK_COUNTS_PACKETS", "LOSS=1", FALSE_PROMISE),
        ("LEAF_SPINE NO_LAST_TAG", "REPEAT=1", NOT_EXACT),
        ("LEAF_SPINE NO_PART_TAG", "REPEAT=1", NOT_EXACT),
        ("LEAF_SPINE NO_PART_TAG", "REPEAT=1 LOOK_INSIDE", NOT_PURE),
        ("LEAF_SPINE PART_NEW_ID", "LOSS=1", NOT_EXACT),
        ("LEAF_SPINE PART_NEW_ID", "LOSS=1 LOOK_INSIDE", NOT_PURE),
        full("LEAF_SPINE PART_UNFINISHED", "LOSS=2", NOT_EXACT),
        ("LEAF_SPINE NO_SPINE_RELEASE", "LATE=1", AFTER_FETCH),
        *(("LEAF_SPINE SPINE_COUNTS", faults, REFUSED) for faults in ("REPEAT=1", "LOSS=1")),
        ("NO_BLOCKS ROUNDS=2 NO_CLOSING", "LOSS=1", REFUSED),
        ("ONE_BLOCK NEW_SESSION ANY_SESSION=FEATURE", "", NOT_EXACT),
        ("ONE_BLOCK NEW_SESSION ANY_SESSION=SUM", "", OF_ANOTHER_SESSION),
        ("NO_BLOCKS NEW_SESSION ANY_SESSION=DONE", "", TOO_EARLY),
        ("NO_BLOCKS NEW_SESSION ANY_SESSION=ADVANCE", "", REFUSED),
        full("ONE_BLOCK NEW_SESSION ANY_SESSION=ACK", "", FALSE_PROMISE),
        ("NO_BLOCKS ROUNDS=2 SECOND_PROCESS ANY_PROCESS", "", TAKES_PART_TWICE),
        ("EARLY=1 REPORTS_EARLY", "", REFUSED),
        ("EARLY=1 ONE_BLOCK SLOW=1 REPORTS_EARLY", "RESTARTS=1", TOO_EARLY),
        ("EARLY=1 BROKEN_WORKER LATER_LET_IN", "", TAKEN_FROM_OTHERS),
        ("EARLY=1 VOID_USED", "", VOID_ROUND_USED),
        ("EARLY=1 VOID_KEPT", "", VOID_SUM_LEFT),
        ("EARLY=2 ONE_BLOCK ROUNDS=3 VOID_TAG_AGAIN", "", NOT_EXACT),
        full("EARLY=1 OWN_MAGNITUDE", "RESTARTS=1", ANOTHER_MAXIMUM),
        ("EARLY=1 ONE_BLOCK SECOND_PROCESS EARLY_UNKNOWN", "", TAKES_PART_TWICE),
        ("POOLS=2 TWO_WORKERS NO_POOL_OFFSET", "", TAKEN_FROM_OTHERS),
        ("POOLS=2 TWO_WORKERS ONE_BARRIER", "", TOO_EARLY),
        ("POOLS=2 TWO_WORKERS UNITS=3 NO_BARRIER_AWAITED", "RESTARTS=1", TAKEN_FROM_OTHERS),
        ("POOLS=2 TWO_WORKERS ONE_BLOCK ONE_OPENING_ENOUGH", "LOSS=1", REFUSED),
        ("POOLS=2 TWO_WORKERS ONE_BLOCK PASSED_OPENING_HEEDED", "LOSS=1", REFUSED),
        full("POOLS=2 TWO_WORKERS DONES_SURVIVE", "RESTARTS=1 LOSS=1", REFUSED),
        full("TWO_WORKERS UNITS=3", "RESTARTS=1 REPEAT=2", REFUSED),
        ("BUNDLES=2 NO_LAST_TAG", "REPEAT=1 LOOK_INSIDE", NOT_PURE),
        ("BUNDLES=2 MISTAKE=SHELF_KEPT", "LOSS=1", OF_ANOTHER_BLOCK),
        ("BUNDLES=2 POOLS=2 TWO_WORKERS MISTAKE=ONE_SHELF", "", LEFT_ON_SHELF),
        ("BUNDLES=4 MISTAKE=LAST_WAITS", "", LEFT_ON_SHELF),
        ("BUNDLES=2 MISTAKE=RECALLED_TO_SHELF", "LOSS=1", ON_SHELF_TWICE),
        ("BUNDLES=2 MISTAKE=NONE_AFTER_FETCH", "LOSS=2", BUNDLED_AFTER_FETCH),
        ("STREAM MISTAKE=ONE_BIT", "LOSS=1 LATE=1", NOT_EXACT),
        ("STREAM MISTAKE=ONE_BIT", "LOSS=1 REPEAT=1", NOT_EXACT),
        ("STREAM MISTAKE=NO_SEEN", "LOSS=1", NOT_EXACT),
        ("STREAM MISTAKE=NO_SEEN", "REPEAT=1 LOOK_INSIDE", NOT_PURE),
        ("STREAM MISTAKE=EQUAL_OVERWRITES", "", NOT_EXACT),
        ("STREAM MISTAKE=STALE_ADDED", "REPEAT=1", NOT_EXACT),
        ("STREAM MISTAKE=STALE_ADDED", "REPEAT=1 LOOK_INSIDE", NOT_PURE),
        ("STREAM MISTAKE=ANY_RESULT", "REPEAT=1", SUM_OF_ANOTHER),
    ],
)
def test_a_mistake_is_found(tmp_path, mistake, faults, error):
    search = reduce if mistake.startswith("STREAM ") else check
    verdict = search(tmp_path, f"{mistake.removeprefix('STREAM ')} {faults}", SAFE)
    assert verdict.errors == 1
    assert error in verdict.output


def test_without_release_the_values_are_still_right(tmp_path):
    """A host that never mixes does not need it; README.md says what it is for."""
    verdict = check(tmp_path, "NO_RELEASE SUM_AFTER_FETCH_ALLOWED LATE=1", ENDS)
    assert verdict.errors == 0, verdict.output


@pytest.mark.parametrize(
    "switches",
    [
        "SLOW=2",
        full("SLOW=2 QUESTIONS_EARLY"),
        full("SLOW=2 QUESTIONS_EARLY SERVES_EARLY LOSS=1"),
        full("QUESTIONS_EARLY SERVES_EARLY LOSS=2"),
    ],
)
def test_to_fetch_before_the_opening_is_over_is_useless(tmp_path, switches):
    """It is no error: the switch drops the fetch, or the owners answer later."""
    verdict = check(tmp_path, f"EARLY=1 ONE_BLOCK FETCHES_EARLY {switches}", ENDS, optimised=True)
    assert verdict.errors == 0, verdict.output


_STRANDING = (
    "NO_BLOCKS NEW_SESSION NO_WAITING | NO_DONE_AGAIN RESTARTS=1 | "
    "LEAF_SPINE SPINE_ONLY NO_DONE_AGAIN RESTARTS=1 | BUNDLES=2 MISTAKE=NOT_ALONE LOSS=1 | "
    "POOLS=2 ONE_BLOCK ONLY_NEWEST_DONE_AGAIN RESTARTS=1 | POOLS=2 TWO_WORKERS ONE_DEDUP | "
    "POOLS=2 TWO_WORKERS ONLY_WHERE_SUMS_ARE_MISSING RESTARTS=1 | "
    "POOLS=2 TWO_WORKERS ONE_GROUP LOSS=1"
)
_STRANDING_IN_THE_STREAM = "WINDOW=3 | KEEPS=1 RESTARTS=1 | MISTAKE=NO_ASKING WINDOW=1 RESTARTS=1"


@pytest.mark.parametrize(
    ("search", "switches"),
    [(check, each) for each in _STRANDING.split(" | ")]
    + [(reduce, each) for each in _STRANDING_IN_THE_STREAM.split(" | ")]
    + [full(check, "ONE_BLOCK NEW_SESSION NO_WAITING")],
)
def test_a_mistake_strands_a_worker(tmp_path, search, switches):
    verdict = search(tmp_path, switches, ENDS)
    assert verdict.errors == 1
    assert CIRCLE in verdict.output


@pytest.mark.full
@pytest.mark.parametrize(("restarted", "errors"), [("SPINE_ONLY", 1), ("LEAVES_ONLY", 0)])
def test_a_leaf_that_advances_by_itself_strands_the_others(tmp_path, restarted, errors):
    """When the spine restarts, and only then: it waits for a leaf that says nothing more."""
    switches = f"LEAF_SPINE LEAF_ADVANCES RESTARTS=1 {restarted}"
    verdict = check(tmp_path, switches, ENDS, optimised=True)
    assert verdict.errors == errors
    assert (CIRCLE in verdict.output) == bool(errors)


_OF_THE_STREAM = (
    "LOSS=1 LATE=1 REPEAT=1 | RESTARTS=1 LOSS=1 | SLOW=1 RESTARTS=1 | WORKERS=3 LOSS=1 | "
    "FRAGMENTS=5 LOSS=1 REPEAT=1"
)
_OF_THE_STREAM_IN_MANY_WAYS = (
    "FRAGMENTS=5 LOSS=1 LATE=1 | FRAGMENTS=5 RESTARTS=1 LOSS=1 | "
    "SLOTS=4 WINDOW=2 FRAGMENTS=6 LOSS=1 LATE=1 | RESTARTS=1 LOSS=1 LATE=1 | "
    "RESTARTS=1 LOSS=1 LATE=1 REPEAT=1 | SLOW=1 LOSS=1 LATE=1 REPEAT=1 | "
    "SLOW=1 RESTARTS=1 LOSS=1 | WORKERS=3 LOSS=1 LATE=1 | WORKERS=3 LOSS=1 REPEAT=1 | "
    "WORKERS=3 RESTARTS=1 | WORKERS=3 SLOW=1 LOSS=1"
)


@pytest.mark.parametrize(
    "switches", [*_OF_THE_STREAM.split(" | "), *map(full, _OF_THE_STREAM_IN_MANY_WAYS.split(" | "))]
)
@pytest.mark.timeout(1200)
def test_every_worker_gets_every_sum_of_the_stream(tmp_path, switches):
    verdict = reduce(tmp_path, f"LOOK_INSIDE {switches}", ENDS, seconds=1100, optimised=True)
    assert verdict.errors == 0, verdict.output
    assert verdict.states > 500


@pytest.mark.parametrize(("window", "errors"), [(2, 0), (3, 1)])
def test_lost_sums_are_repeated_without_a_question_in_half_the_slots(tmp_path, window, errors):
    """A worker with a wider window overwrites sums that others still lack."""
    stream = f"FRAGMENTS=6 SLOTS=4 WINDOW={window} LOSS=1"
    verdict = reduce(tmp_path, f"MISTAKE=NO_ASKING {stream}", ENDS)
    assert verdict.errors == errors
    assert (CIRCLE in verdict.output) == bool(errors)
    assert reduce(tmp_path, stream, ENDS).errors == 0
