"""The report of a training, its tables, plots and events, from made-up epochs."""

from dataclasses import replace

import pytest
import typer
from rich.console import Console

from switchgnn.commands.train import display
from switchgnn.commands.train.follow import TrainEvents
from switchgnn.host import registry
from switchgnn.jobs.plots import draw_plots
from switchgnn.jobs.train_report import Recorder

WORKERS, EPOCHS = 3, 4
WHAT = {
    **{"dataset": "karate", "model": "gcn", "reason": "made up"},
    **{"strategy": "paper", "why": [], "partition": "metis", "block_strategy": "mlgp"},
    **{"send": "multicast", "weight": 0.0, "order": "gamr"},
    **{"vertices": 34, "edges": 156},
}


def event(worker, epoch, *, loss=1.0, accuracy=None):
    """Worker w takes (w + 1) · epoch seconds: half waiting, a quarter all-reduce."""
    seconds = (worker + 1) * epoch
    return {
        "event": "epoch",
        "epoch": epoch,
        "loss": loss / epoch,
        "accuracy": accuracy,
        "seconds": seconds,
        "exchange": seconds * 0.6,
        "waiting": seconds * 0.5,
        "all_reduce": seconds * 0.25,
        "traffic": {
            **{"frames_up": 100 + epoch, "bytes_up": 10 * epoch},
            **{"frames_down": 2 * epoch, "bytes_down": 20 * epoch},
        },
        "void": epoch // 2,
    }


def report(transport="switch", *, loss=1.0, traffic=True, kept=0, saved=None):
    heard = []
    recorder = Recorder(WORKERS, heard.append)
    for epoch in range(1, EPOCHS + 1):
        accuracy = {"train": 0.5, "validation": None, "test": epoch / 10} if epoch == 3 else None
        for worker in reversed(range(WORKERS)):
            made = event(worker, epoch, loss=loss, accuracy=accuracy)
            recorder(worker, made | {name: count * epoch for name, count in (saved or {}).items()})
    recorder(0, {"event": "ready"})
    assert [each["epoch"] for each in heard] == list(range(1, EPOCHS + 1))
    size = 1000 if traffic else 0
    finished = [
        {
            "traffic": {"bytes_up": size * (worker + 1), "bytes_down": 2 * size},
            "expected": {"bytes_up": size, "bytes_down": 2 * size},
            "kept": kept,
        }
        for worker in range(WORKERS)
    ]
    return recorder.report(finished, None, transport=transport, workers=WORKERS, **WHAT)


def test_an_epoch_is_as_long_as_that_of_the_slowest_worker():
    made = report()
    assert made.seconds == [3, 6, 9, 12]
    # The first epoch also warms up.
    assert made.epoch_seconds == 9


def test_the_split_is_the_mean_over_the_workers_and_adds_up():
    split = report().split
    mean = (1 + 2 + 3) / 3 * 3
    assert split["waiting"] == pytest.approx(mean / 2)
    assert split["all_reduce"] == pytest.approx(mean / 4)
    assert split["compute"] + split["waiting"] + split["all_reduce"] == pytest.approx(mean)
    assert split["exchange"] == pytest.approx(mean * 0.6)


def test_losses_accuracies_and_bytes():
    made = report()
    assert made.losses == [1, 1 / 2, 1 / 3, 1 / 4]
    assert (made.train_accuracy, made.validation_accuracy, made.test_accuracy) == (0.5, None, 0.3)
    assert made.bytes_per_link[2] == {"up": 3000, "down": 2000}
    assert (made.total_bytes, made.expected_bytes) == (12000, 9000)


def test_the_traffic_of_an_epoch_is_the_mean_without_the_first():
    made = report()
    one = {"frames_up": 1, "bytes_up": 10, "frames_down": 2, "bytes_down": 20}
    assert made.epoch_traffic == [one] * WORKERS
    assert (made.epoch_bytes, made.epoch_frames) == (30 * WORKERS, 3 * WORKERS)
    assert made.void_rounds == EPOCHS // 2


def test_differences_are_those_from_local():
    reports = [report(), report("host", loss=1.5), report("local", traffic=False)]
    assert display.largest_difference(reports) == {"switch": 0.0, "host": 0.5}
    assert display.largest_difference(reports[:2]) == {}


def test_the_closing_line():
    reports = [report(), report("host"), report("local", traffic=False)]
    carried = "Carried: switch 12.0 kB; host 12.0 kB, 1.0 times as much; local nothing."
    agree = "The losses agree with those of one process, to 0.0e+00."
    assert display.closing_line(reports) == f"{carried} {agree}"
    assert display.closing_line(reports[:2]) == carried.replace("; local nothing", "")
    assert display.closing_line(reports[:1]) is None
    reports[1] = report("host", loss=1.5)
    differ = "The losses of host differ from those of one process by up to 5.0e-01."
    assert display.closing_line(reports) == f"{carried} {differ}"


SAVED = {"bytes_without": 4000, "rows": 10, "skipped_rows": 3, "epsilon": 0.0625}


def test_bytes_with_and_without_compression_are_reported():
    cached = replace(report(saved=SAVED), compression="--cache auto --bits 8")
    assert cached.bytes_without == WORKERS * EPOCHS * 4000
    assert (cached.rows, cached.skipped_rows, cached.epsilon) == (120, 36, 0.25)
    rounded = SAVED | {"rows": 0, "skipped_rows": 0}
    del rounded["epsilon"]
    only_bits = replace(report("host", saved=rounded), compression="--bits 8")
    assert display.saving_lines([cached, only_bits, report()]) == [
        "switch with --cache auto --bits 8: 12.0 kB instead of 48.0 kB, 25.0%; 30.0% of the rows "
        "were left out, and epsilon was 0.25 at the end.",
        "host with --bits 8: 12.0 kB instead of 48.0 kB, 25.0%.",
    ]


@pytest.mark.whole
def test_plots_show_what_was_reported(tmp_path):
    reports = [report(), report("host", loss=2.0), report("local", traffic=False)]
    files = draw_plots(reports, tmp_path / "plots")
    names = sorted(path.name for path in files)
    stems = ("bytes-per-worker", "loss-over-time", "time-split")
    assert names == sorted(f"{stem}.{end}" for stem in stems for end in ("png", "svg"))
    for path in files:
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG")
        else:
            drawing = path.read_text()
            assert "</svg>" in drawing
            # Text is drawn as curves, and named in comments.
            assert f"<!-- {registry.HOST.label}" in drawing


def test_events_hold_the_epochs(tmp_path):
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="TensorBoard is not installed",
    )
    with TrainEvents(tmp_path, "switch") as events:
        events.epoch(event(0, 1))
        events.epoch(event(0, 2, accuracy={"train": 0.5, "validation": None, "test": 0.25}))
    kept = accumulator.EventAccumulator(str(tmp_path / "switch"))
    kept.Reload()
    assert [(each.step, each.value) for each in kept.Scalars("loss")] == [(1, 1.0), (2, 0.5)]
    assert [each.value for each in kept.Scalars("accuracy/test")] == [0.25]
    assert "accuracy/validation" not in kept.Tags()["scalars"]
    assert [each.value for each in kept.Scalars("traffic/bytes_up")] == [10, 20]


def made(transport, seconds, *links, bandwidth=None, waiting=0.05):
    """Each link has the bytes up and down of an epoch, in frames of 1,000 bytes."""
    traffic = [
        {"bytes_up": up, "bytes_down": down, "frames_up": up / 1e3, "frames_down": down / 1e3}
        for up, down in links
    ]
    return replace(
        report(transport),
        **{"epoch_seconds": seconds, "epoch_traffic": traffic, "bandwidth": bandwidth},
        split={"waiting": waiting},
    )


SWITCH = (100_000, 500_000), (200_000, 400_000)
HOST = (900_000, 100_000), (400_000, 600_000)
PARTIAL = (300_000, 100_000), (400_000, 100_000)


def test_the_fastest_and_the_leanest_path_may_be_two():
    reports = [
        made("switch", 0.1, *SWITCH, bandwidth=50),
        made("host", 0.2, *HOST, bandwidth=50),
        made("host-partial", 0.4, *PARTIAL, bandwidth=50),
        replace(report("local", traffic=False), epoch_traffic=[]),
    ]
    papers = made("switch-paper", 0.3, *SWITCH, bandwidth=50)
    both = display.verdict_lines([*reports, papers])[2]
    assert "switch-paper 300 ms" in both
    assert both.endswith("The switch loses: it takes 1.50 times the time.")
    assert display.verdict_lines(reports) == [
        "Time of an epoch: switch 100 ms; host, the fastest path between hosts, 200 ms. "
        "The switch wins: it takes 0.50 times the time.",
        "Bytes of an epoch: switch 1.20 MB; host-partial, the leanest path between hosts, "
        "900.0 kB. The switch loses: it takes 1.33 times the bytes.",
        # 500 kB at 50 Mbit/s, and 900 kB.
        "The busiest link of switch (worker 0, down) needs 80 ms of an epoch for 500.0 kB at "
        "50 Mbit/s, 80%: the network is the limit. The busiest link of host (worker 0, up) needs "
        "144 ms of an epoch for 900.0 kB at 50 Mbit/s, 72%: the network is the limit.",
    ]


def test_a_network_with_time_to_spare_is_not_the_limit():
    reports = [made(name, 1.0, *SWITCH, bandwidth=50) for name in ("switch", "host")]
    time, size, why = display.verdict_lines(reports)
    assert time.endswith("Both take the same time.")
    assert size.endswith("Both take the same bytes.")
    assert why.count("80 ms of an epoch for 500.0 kB at 50 Mbit/s, 8%: the network is not") == 2


def test_without_a_limit_frames_and_waiting_are_told():
    reports = [made("switch", 0.3, *SWITCH, waiting=0.2), made("host", 0.1, *HOST)]
    time, _, why = display.verdict_lines(reports)
    assert time.endswith("The switch loses: it takes 3.00 times the time.")
    assert "an epoch takes 1,200 frames of 1,000 bytes, and workers wait 200 ms" in why
    assert "an epoch takes 2,000 frames of 1,000 bytes, and workers wait 50 ms" in why


@pytest.mark.parametrize("names", [("switch",), ("switch", "local"), ("host", "host-partial")])
def test_without_both_kinds_there_is_nothing_to_compare(names):
    assert display.verdict_lines([made(name, 0.1, *SWITCH) for name in names]) == []


@pytest.mark.parametrize(
    ("saved", "as_json", "said"),
    [
        (False, False, "Interrupted over host after 2 of 100 epochs.\n"),
        (True, False, "2 of 100 epochs; the same command goes on from "),
        (
            False,
            True,
            '"transport": "host", "epochs": 2, "losses": [1.0, 0.5], "test_accuracy": 0.5',
        ),
    ],
)
def test_an_interrupt_shows_what_was_reached(saved, as_json, said, tmp_path, capsys):
    if saved:
        (tmp_path / "saved").touch()
    shown = display.Epochs(Console(), "auto", 100, checkpoint=tmp_path / "saved", as_json=as_json)
    with pytest.raises(typer.Exit) as ended, shown:
        shown.takes("host")
        shown.epoch(event(0, 1))
        shown.epoch(event(0, 2, accuracy={"validation": None, "test": 0.5}))
        raise KeyboardInterrupt
    assert ended.value.exit_code == 130
    assert said in capsys.readouterr().out
