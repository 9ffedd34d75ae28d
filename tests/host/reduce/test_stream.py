"""Streams of all workers over a model switch: sums, losses, restarts, and workers that end."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from switchgnn.host import FeatureError, InNetworkError, Pace
from switchgnn.host.base.pace import CongestionRule
from switchgnn.host.innetwork.errors import (
    DisagreementError,
    ExchangeTimeoutError,
    PlanMismatchError,
    RoundMismatchError,
)
from switchgnn.host.reduce import frames
from switchgnn.host.reduce.reduction import Call, frames_of_floats
from switchgnn.host.reduce.stream import StreamStart
from switchgnn.host.wire.header import Header, Kind
from tests.host.addresses import addresses_of
from tests.host.reduce import switch_model as model

SLOTS = 8
GROUP = 256 * SLOTS
PACE = Pace(window=64, first_window=16, timeout=5.0)
STEP = 0.001
SIZES = (0, 1, 8, 9, 255, 256, 257, 700, GROUP - 1, GROUP, GROUP + 1, 3 * GROUP + 300)


@dataclass
class Bench:
    network: model.Network
    streams: list

    @property
    def clock(self):
        return self.network.clock

    def step(self, streams=None):
        for stream in self.streams if streams is None else streams:
            stream.step(0.0)
        self.network.advance(STEP)

    def run(self, seconds=60.0, streams=None):
        end = self.clock.seconds + seconds
        streams = self.streams if streams is None else streams
        while not all(stream.idle for stream in streams):
            assert self.clock.seconds < end, "the streams did not end in time"
            self.step(streams)

    def submit(self, tensors, *call):
        return [one.submit(each, *call) for one, each in zip(self.streams, tensors, strict=True)]

    def submit_integers(self, size, *call):
        values = tensors(np.random.default_rng(1), len(self.streams), size, integers)
        return self.submit(values, *call), values

    def total(self, name):
        return sum(getattr(stream.counters, name) for stream in self.streams)


def bench(workers, slots=SLOTS, *, weather=None, seed=0, pace=PACE, **options):
    network = model.Network(model.ModelSwitch(workers, slots), weather, seed)
    more = {"pace": pace, "clock": network.clock, **options}
    return Bench(network, model.started_streams(network.link, workers, **more))


def integers(generator, size):
    return generator.integers(-(2**31), 2**31, size, dtype=np.int32)


def floats(generator, size):
    """Values of magnitudes that differ within a fragment, and from fragment to fragment."""
    exponents = generator.integers(-60, 60, -(-size // 50)).repeat(50)[:size]
    return (generator.standard_normal(size) * 2.0**exponents).astype(np.float32)


def tensors(generator, workers, size, kind):
    return [kind(generator, size) for _ in range(workers)]


def assert_integer_sums(reductions, values, **_):
    expected = np.array(values).astype(object).sum(axis=0)
    expected = np.array([(int(each) + 2**31) % 2**32 - 2**31 for each in expected])
    for reduction in reductions:
        assert reduction.done
        assert len(reduction.result) == len(values[0])
        assert reduction.result.dtype == np.int32
        assert np.array_equal(reduction.result, expected)


def assert_float_sums(reductions, values, bits=48, slots=SLOTS):
    """Within the bound of each scale, and the rounding to float32."""
    workers, first = len(values), reductions[0].result
    for reduction in reductions:
        assert reduction.done
        assert np.array_equal(reduction.result, first, equal_nan=True)
    for part in model.scaled_alike(len(first), workers, slots, bits):
        parts = np.array([each[part] for each in values], dtype=np.float64)
        largest = np.abs(parts).max()
        exponent = -126 if largest == 0 else max(-126, int(np.ceil(np.log2(largest))))
        bound = model.largest_error(workers, exponent, bits)
        exact = parts.sum(axis=0)
        error = np.abs(first[part].astype(np.float64) - exact)
        rounding = np.abs(exact) * 2.0**-24 + 2.0**-150
        assert (error <= (float(bound) + rounding) * (1 + 2.0**-20)).all()


KINDS = {"int32": (integers, assert_integer_sums), "float32": (floats, assert_float_sums)}


@pytest.fixture(params=["native", "python"])
def parser(request, monkeypatch):
    if request.param == "python":
        monkeypatch.setattr(frames, "native_frames", lambda: None)
    elif frames.native_frames() is None:
        pytest.skip("there is no compiler")


@pytest.mark.parametrize("bits", [32, 48])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.usefixtures("parser")
def test_tensors_of_all_sizes_are_summed(workers, kind, bits):
    make, check = KINDS[kind]
    generator = np.random.default_rng(workers)
    table = bench(workers, bits=bits)
    queued = []
    for size in SIZES:
        values = tensors(generator, workers, size, make)
        queued.append((table.submit(values), values))
    table.run()
    for reductions, values in queued:
        check(reductions, values, bits=bits)
    assert table.total("resent") == 0


def test_first_fragments_share_scales_where_there_are_many_workers():
    table = bench(40, 64)
    values = tensors(np.random.default_rng(1), 40, 50 * 170, floats)
    reductions = table.submit(values)
    table.run()
    assert_float_sums(reductions, values, slots=64)


@pytest.mark.parametrize("size", [1, 170, 171, 14 * 170])
def test_floats_take_two_round_trips(size):
    """Their codes leave with the mark, and all that the window lets go after its sum."""
    table, sent = bench(2, 64, pace=replace(PACE, congestion=CongestionRule.NONE)), set()
    table.network.lose = lambda *crossing: sent.add((*crossing, table.clock.seconds))
    table.submit([np.ones(size, np.float32)] * 2)
    table.run()
    assert len({at for _, _, header, at in sent if header.kind is Kind.REDUCE}) == 2


@pytest.mark.parametrize("bits", [32, 48])
@pytest.mark.parametrize("size", [*SIZES, 50 * 170])
def test_the_frames_of_floats_are_known_before(monkeypatch, size, bits):
    table, sent = bench(1, 64, bits=bits), []
    send = table.network.send

    def count(worker, frame, *, up):
        sent.extend([len(frame)] * up)
        send(worker, frame, up=up)

    monkeypatch.setattr(table.network, "send", count)
    table.submit([np.ones(size, dtype=np.float32)])
    table.run()
    assert frames_of_floats(size, 1, 64, bits) == (len(sent), sum(sent))


WEATHERS = {
    "loss": model.Weather(loss=0.02),
    "heavy loss": model.Weather(loss=0.10),
    "reordering": model.Weather(jitter=0.02),
    "strays": model.Weather(loss=0.01, strays=0.3),
    "all": model.Weather(loss=0.05, repeats=0.2, strays=0.1, jitter=0.01),
}


@pytest.mark.parametrize("slots", [8, 16])
@pytest.mark.parametrize("weather", WEATHERS)
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_bad_networks_change_no_sum(workers, weather, slots):
    generator = np.random.default_rng(workers)
    table = bench(workers, slots, weather=WEATHERS[weather], seed=workers)
    queued = []
    for size in (300, 5 * GROUP + 1, 1, 2 * GROUP):
        for make, check in KINDS.values():
            values = tensors(generator, workers, size, make)
            queued.append((check, table.submit(values), values))
    table.run()
    for check, reductions, values in queued:
        check(reductions, values, slots=slots)
    assert table.total("wrong") == table.total("asked") == 0


def test_a_lost_sum_is_still_in_the_switch_when_others_go_on():
    """However wide the window is: nobody has to be asked."""
    table = bench(2, pace=Pace(window=SLOTS, first_window=SLOTS, timeout=5.0))
    lost = []

    def lose(up, worker, header):
        if up or worker or header.kind is not Kind.REDUCED or len(lost) > 2:
            return False
        lost.append(header)
        return True

    table.network.lose = lose
    reductions, values = table.submit_integers(4 * GROUP)
    table.run(seconds=0.9)
    assert_integer_sums(reductions, values)
    assert len(lost) == 3


def test_the_window_bounds_what_is_on_its_way():
    table = bench(2, 64, pace=Pace(window=3, timeout=5.0, congestion=CongestionRule.NONE))
    most = 0
    pending = set()

    def lose(up, worker, header):
        nonlocal most
        number = header.round << 16 | header.block_id
        if worker == 0 and header.kind is Kind.REDUCE:
            pending.add(number)
        if worker == 0 and header.kind is Kind.REDUCED:
            pending.discard(number)
        most = max(most, len(pending))
        return False

    table.network.lose = lose
    table.submit_integers(40 * 256)
    table.run()
    assert most == 3


@pytest.mark.parametrize(
    "values", [np.zeros(4), np.zeros((2, 2), dtype=np.float32), np.zeros(8, dtype=np.int32)[::2]]
)
def test_other_tensors_are_refused(values):
    with pytest.raises(FeatureError):
        bench(1).streams[0].submit(values)


def test_averages_of_integers_are_rounded_towards_zero():
    table = bench(2)
    values = [np.array([-7, 7, 2**31 - 1], np.int32), np.array([0, 0, 0], np.int32)]
    for each in (reductions := table.submit(values, Call(average=True))):
        assert not each.done
    table.run()
    assert [each.result.tolist() for each in reductions] == 2 * [[-3, 3, 2**30 - 1]]


I32, F32 = np.int32, np.float32


@pytest.mark.parametrize(
    ("calls", "parts"),
    [
        # The last fragments have one width.
        ([(F32, 5), (F32, 8)], ["0 reduces float32[5] by sum", "1 reduces float32[8] by sum"]),
        ([(F32, 130), (F32, 256)], ["float32[130]", "float32[256]"]),
        ([(I32, 17), (I32, 32)], ["int32[17]", "int32[32]"]),
        ([(F32, 50), (F32, 100_000)], ["float32[50]", "float32[100000]"]),
        ([(I32, 50), (I32, 100_000)], ["int32[50]", "int32[100000]"]),
        ([(I32, 100_000), (F32, 100_000)], ["int32[100000]", "float32[100000]"]),
        ([(F32, 0), (F32, 1)], ["float32[0]", "float32[1]"]),
        ([(F32, 9), (F32, 9, Call(type="bfloat16"))], ["float32[9]", "bfloat16[9]"]),
        ([(F32, 9), (F32, 9, Call(average=True))], ["float32[9] by sum", "float32[9] by average"]),
        ([(F32, 8), (F32, 8), (F32, 5)], ["worker 0 reduces float32[8]", "worker 2 reduces"]),
        ([(I32, 1), (I32, 2), (I32, 3)], ["int32[1] by sum", "int32[2] by sum"]),
    ],
)
@pytest.mark.parametrize("weather", [None, WEATHERS["all"]])
def test_different_tensors_are_an_error_at_all_workers(calls, parts, weather):
    """The error comes within a second, wherever the tensors stand among equal ones."""
    table = bench(len(calls), weather=weather)
    reductions, equal = table.submit_integers(3 * GROUP)
    table.run()
    different = [
        stream.submit(np.ones(size, kind), *call)
        for stream, (kind, size, *call) in zip(table.streams, calls, strict=True)
    ]
    table.submit(equal)
    assert_integer_sums(reductions, equal)
    began, errors = table.clock.seconds, {}
    while len(errors) < len(calls):
        for worker, stream in enumerate(table.streams):
            try:
                if worker not in errors:
                    stream.step(0.0)
            except DisagreementError as error:
                errors[worker] = str(error)
        table.network.advance(STEP)
        assert table.clock.seconds - began < 1.0
    assert all(part in error for part in parts for error in errors.values())
    assert not any(each.done for each in different)


def test_a_call_ends_at_its_timeout_and_names_who_has_not_contributed():
    """Neither the patience nor signs of life of the others prolong it."""
    table, limit = bench(4), 2.0
    for stream in table.streams[1:3]:
        stream.submit(np.zeros(4, dtype=F32), Call(timeout=limit))
    began = table.clock.seconds
    with pytest.raises(ExchangeTimeoutError, match=r"for workers 0, 3 .* timeout of 2 s") as caught:
        table.run()
    assert caught.value.workers == (0, 3)
    assert limit < table.clock.seconds - began < limit + 0.5


def test_a_timeout_is_a_time_without_sums():
    """Many tensors may take longer together."""
    table, limit = bench(2), 0.05
    reductions, values = table.submit_integers(40 * GROUP, Call(timeout=limit))
    began = table.clock.seconds
    table.run()
    assert table.clock.seconds - began > limit
    assert_integer_sums(reductions, values)


@pytest.mark.usefixtures("parser")
def test_frames_of_other_kinds_are_ignored():
    table = bench(1)
    other = addresses_of(0).frame(
        Header(kind=Kind.SUM, session=model.SESSION, fragment=31).pack(bytes(1024))
    )
    table.network.inboxes[0].extend([other] * 3)
    table.submit([np.zeros(300, dtype=np.int32)])
    table.run()
    assert table.total("ignored") == 3


def test_the_next_stream_begins_after_the_newest_fragment():
    table = bench(2)
    table.submit_integers(3 * GROUP)
    table.run()
    # One ahead and 24 with data, from 8 on.
    opening = table.streams[0].query()
    assert opening == StreamStart(newest=32, slots=8)
    assert opening.first == 40


def test_numbers_use_all_40_bits():
    table = bench(2)
    for first in (2**32 - SLOTS, 2**40 - 8 * SLOTS):
        for stream in table.streams:
            stream.start(first)
        reductions, values = table.submit_integers(6 * GROUP)
        table.run()
        assert_integer_sums(reductions, values)
    assert table.streams[0].query().newest == 2**40 - 2 * SLOTS
    with pytest.raises(RoundMismatchError, match="--new-session"):
        table.submit_integers(6 * GROUP)


@pytest.mark.parametrize("seed", range(8))
def test_a_switch_that_forgets_everything_changes_no_sum(seed):
    generator = np.random.default_rng(seed)
    table = bench(3, weather=model.Weather(loss=0.02, jitter=0.002), seed=seed)
    values = tensors(generator, 3, 6 * GROUP, integers)
    more = tensors(generator, 3, 6 * GROUP, floats)
    reductions, others = table.submit(values), table.submit(more)
    for _ in range(3):
        for _ in range(int(generator.integers(5, 40))):
            table.step()
        table.network.switch.restart()
    table.run()
    assert_integer_sums(reductions, values)
    assert_float_sums(others, more)


def seconds_after_loss(table, loser, fragments):
    """Let a worker lose all sums of fragments, which the switch then forgets; finish all."""

    def lose(up, worker, header):
        lost = worker == loser and header.kind is Kind.REDUCED and header.block_id in fragments
        return lost and not up

    table.network.lose = lose
    for _ in range(200):
        table.step()
    table.network.switch.restart()
    table.network.lose = lambda up, worker, header: False
    began = table.clock.seconds
    table.run()
    return table.clock.seconds - began


@pytest.mark.parametrize("loser", [0, 2])
def test_a_sum_that_only_others_have_is_asked_for(loser):
    """One worker loses all sums of one fragment, and then the switch forgets it."""
    table = bench(3)
    reductions, values = table.submit_integers(2 * GROUP)
    assert 0.5 < seconds_after_loss(table, loser, [SLOTS + 2]) < 3.0
    assert_integer_sums(reductions, values)
    assert table.streams[loser].counters.asked >= 1
    assert table.total("answered") >= 1


def test_many_sums_that_only_others_have_do_not_take_a_second_each():
    table = bench(3, 64)
    reductions, values = table.submit_integers(40 * 256)
    here = range(66, 86)
    assert seconds_after_loss(table, 2, here) < 5.0
    assert_integer_sums(reductions, values)
    assert table.streams[2].counters.asked >= len(here) // 2


def test_a_worker_that_ends_is_named_within_the_patience():
    table = bench(4)
    table.submit_integers(2 * GROUP)
    for _ in range(3):
        table.step()
    table.network.cut = {2}
    ended = table.clock.seconds
    rest = [stream for number, stream in enumerate(table.streams) if number != 2]
    with pytest.raises(ExchangeTimeoutError, match="worker 2") as caught:
        table.run(seconds=3 * PACE.timeout, streams=rest)
    assert caught.value.workers == (2,)
    assert PACE.timeout - 1 < table.clock.seconds - ended < PACE.timeout + 2


def test_a_worker_that_only_gives_signs_of_life_is_waited_for():
    table = bench(3)
    values = tensors(np.random.default_rng(1), 3, 2 * GROUP, integers)
    reductions = [table.streams[worker].submit(values[worker]) for worker in (0, 1)]
    end = table.clock.seconds + 3 * PACE.timeout
    while table.clock.seconds < end:
        table.step()
    reductions.append(table.streams[2].submit(values[2]))
    table.run()
    assert_integer_sums(reductions, values)


def test_while_a_worker_is_missing_only_the_oldest_fragment_is_repeated():
    table = bench(2, 64)
    numbers = []

    def lose(up, worker, header):
        if header.kind is Kind.REDUCE:
            numbers.append(header.round << 16 | header.block_id)
        return False

    table.network.lose = lose
    first = table.streams[0]
    for _ in range(2):
        first.submit(np.zeros(3 * 256, dtype=np.int32))
        for _ in range(1000):
            table.step()
    # Each of the eight leaves once, the second one perhaps once more before the first answer.
    again = [number for number in numbers if number != 64]
    assert sorted(set(again)) == [*range(65, 72)]
    assert len(again) <= 8
    assert 10 < len(numbers) - len(again) < 100


def test_heavy_loss_is_repaired_without_long_pauses():
    """Sums that wait for repetitions of others do not count as long round trips."""
    for seed in range(3):
        table = bench(5, weather=model.Weather(loss=0.1), seed=seed)
        table.submit_integers(15 * GROUP)
        table.run(seconds=2.0)


def test_a_slow_switch_is_not_flooded_with_repetitions():
    weather, pace = model.Weather(service=0.005), replace(PACE, window=256)
    table = bench(3, 512, weather=weather, pace=pace)
    table.submit([np.ones(256 * 150, np.int32)] * 3)
    table.run()
    assert table.total("resent") < 2 * table.total("sent")


def test_a_worker_that_was_suspended_does_not_blame_others_for_its_pause():
    both = bench(2)
    reductions = both.submit([np.ones(3 * GROUP, np.int32)] * 2)
    for _ in range(3):
        both.step()
    both.network.advance(8 * PACE.timeout)
    both.run()
    assert_integer_sums(reductions, [np.ones(3 * GROUP, np.int32)] * 2)


@pytest.mark.parametrize(("workers", "steps"), [(2, 1), (1, 1000)])
def test_a_switch_that_ends_is_blamed_itself(workers, steps):
    """Also while a worker is missing."""
    table = bench(2)
    for stream in table.streams[:workers]:
        stream.submit(np.zeros(2 * GROUP, dtype=np.int32))
    for _ in range(steps):
        table.step()
    table.network.cut = {0, 1}
    with pytest.raises(ExchangeTimeoutError, match="no answer from the switch") as caught:
        table.run(seconds=3 * PACE.timeout)
    assert caught.value.workers == ()


def test_a_switch_without_an_answer_is_an_error_of_the_query():
    network = model.Network(model.ModelSwitch(1, SLOTS))
    network.cut = {0}
    with pytest.raises(ExchangeTimeoutError, match="no answer"):
        one_stream(network).query()


def one_stream(network, plan_id=model.PLAN):
    return model.stream_of(network.link(0), 0, 1, plan_id, pace=PACE, clock=network.clock)


def test_another_plan_is_refused():
    with pytest.raises(PlanMismatchError):
        one_stream(model.Network(model.ModelSwitch(1, SLOTS)), plan_id=model.PLAN + 1).query()


@pytest.mark.parametrize("slots", [0, 1, 12])
def test_a_switch_without_slots_is_refused(slots):
    switch = model.ModelSwitch(1, SLOTS)
    switch.announced = slots
    with pytest.raises(InNetworkError, match="slots"):
        one_stream(model.Network(switch)).query()


@pytest.mark.parametrize("field", ["count", "fragment", "feature_group", "session", "block_id"])
@pytest.mark.usefixtures("parser")
def test_sums_that_do_not_fit_are_ignored(field):
    table = bench(2)
    original = table.network.switch.to_all
    wrong = {"count": 3, "fragment": 4, "feature_group": 0, "session": 9, "block_id": 1000}

    def instead(header, body):
        forged = header._replace(**{field: wrong[field]})
        return original(forged, (body * 16)[: 32 * (1 + forged.fragment)])

    table.network.switch.to_all = instead
    values = tensors(np.random.default_rng(1), 2, 512, floats)
    reductions = table.submit(values)
    table.run()
    assert_float_sums(reductions, values)
    assert table.total({"session": "foreign", "block_id": "late"}.get(field, "wrong")) > 0
