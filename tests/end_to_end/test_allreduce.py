"""`switchgnn allreduce`: every sum exact, and the bytes and losses that are expected."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from switchgnn.base.arrays import pack_arrays
from switchgnn.host.base.pace import Pace
from switchgnn.host.reduce.worker import FLOATS, INTEGERS, tensor_of
from switchgnn.jobs import allreduce as job
from switchgnn.jobs.allreduce import NUMBER_BYTES, ReduceOptions, ring_bytes
from tests.end_to_end.conftest import BOTH_ENDS, LOOPBACK, succeeded
from tests.support.markers import COMBINATION_ON_PYTHON, full, words_of

# With 60 bytes of headers for 1,024 of numbers, and queries.
GOODPUT = 0.93
FAULTS = "loss=0.02,duplicate=0.05,reorder=0.05,corrupt=0.01,seed=5"


def reduced(*words):
    report = json.loads(succeeded("allreduce", "--json", "--rounds", 2, *words).stdout)
    assert report["exact"]
    assert report["within"]
    return report


@pytest.mark.parametrize("size", ["4", "64KB"])
@pytest.mark.parametrize("combination", [*BOTH_ENDS, COMBINATION_ON_PYTHON, ("tofino", "loopback")])
def test_sums_are_exact_on_every_switch_and_fabric(combination, size):
    reduced(*words_of(combination), "--workers", 3, "--bytes", size)


@pytest.mark.parametrize("bits", [pytest.param(32, marks=full), 48])
@pytest.mark.parametrize("workers", [pytest.param(1, marks=full), 5])
def test_a_link_carries_each_number_once_each_way(workers, bits):
    """The bytes are those of all-reduces of integers and of floats together."""
    asked = ("--workers", workers, "--bytes", "400KB", "--bits", bits)
    report, both_ways = reduced(*LOOPBACK, *asked), 400_000 * (1 + bits / 32)
    assert both_ways * (1024 + 60) / 1024 <= report["bytes_per_link"]
    if not report["counters"]["resent"]:
        assert report["bytes_per_link"] <= both_ways / GOODPUT


def test_leaves_add_up_for_a_spine(mininet_combination):
    words = (*words_of(mininet_combination), "--topology", "leaf-spine", "--workers", 4)
    reduced(*words, "--bytes", "64KB", "--faults", FAULTS)


def test_faults_cost_repetitions_and_no_sum(combination):
    words = ("--workers", 3, "--bytes", "200KB", "--faults", FAULTS)
    report = reduced(*words_of(combination), *words)
    assert report["counters"]["resent"]
    assert {"lost", "duplicated", "reordered", "corrupted"} <= set(report["faults_injected"])


@pytest.fixture
def options():
    return ReduceOptions(
        workers=3,
        slots=0,
        target="embedded",
        fabric="loopback",
        bandwidth=None,
        ecn_threshold=1,
        elements=300,
        rounds=2,
        seed=1,
        pace=Pace(),
    )


def judged(options, folder, integers, floats, digests=("a", "a", "a")):
    """The report of workers that end with these sums."""
    arrays = {"integers": integers.astype(np.int32), "floats": floats.astype(np.float32)}
    (folder / "sums-0.safetensors").write_bytes(pack_arrays(arrays))
    traffic = {"bytes_up": 1, "bytes_down": 1}
    ends = [
        {"digest": each, "seconds": 1.0, "counters": {}, "faults": {}, "traffic": traffic}
        for each in digests
    ]
    done = SimpleNamespace(result=ends, wires=None)
    return job._report(options, SimpleNamespace(reason=""), done, folder)


def test_a_wrong_sum_is_found(options, tmp_path):
    def tensors(kind):
        given = {"seed": 1, "index": 1, "elements": 300}
        return [tensor_of(kind, worker=worker, **given).astype(np.float64) for worker in range(3)]

    integers = sum(each.astype(np.int64) for each in tensors(INTEGERS))
    floats = sum(tensors(FLOATS))
    wrapped = (integers + 2**31) % 2**32 - 2**31
    right = judged(options, tmp_path, wrapped, floats)
    assert (right.exact, right.within) == (True, True)
    other = wrapped.copy()
    other[299] += 1
    assert not judged(options, tmp_path, other, floats).exact
    # Three times the bound of 32 bits away, and half a step of float32.
    power = 2.0 ** np.ceil(np.log2(np.abs(tensors(FLOATS)).max()))
    floats[7] += 3 * (9 * power / 2**32 + abs(floats[7]) / 2**24)
    wrong = judged(options, tmp_path, wrapped, floats)
    assert (wrong.exact, wrong.within) == (True, False)
    assert wrong.max_error > wrong.error_bound
    different = judged(options, tmp_path, wrapped, sum(tensors(FLOATS)), ("a", "b", "a"))
    assert (different.exact, different.within) == (False, False)


def test_bytes_in_a_ring():
    assert ring_bytes(1000, 4) == 4 * 1000 * NUMBER_BYTES * 3 / 4
