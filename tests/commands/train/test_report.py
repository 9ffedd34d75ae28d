# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The report of a training, its tables, plots and events, from made-up epochs."""

import sys

import pytest
from rich.console import Console

from switchgnn.commands.errors import PlotError
from switchgnn.commands.train.display import (
    closing_line,
    kept_line,
    largest_difference,
    links_table,
    transports_table,
)
from switchgnn.commands.train.follow import EventsError, TrainEvents
from switchgnn.commands.train.plots import draw_plots
from switchgnn.commands.train.report import Recorder
from switchgnn.host.registry import HOST

WORKERS, EPOCHS = 3, 4
WHAT = {
    **{"dataset": "karate", "model": "gcn", "reason": "made up"},
    **{"strategy": "paper", "why": [], "partition": "metis", "block_strategy": "mlgp"},
    **{"send": "multicast", "weight": 0.0, "order": "gamr"},
    **{"vertices": 34, "edges": 156},
}


def event(worker, epoch, *, loss=1.0, accuracy=None, barriers=True):
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
        # The first epoch has four more, and the second one round that is void.
        **({"barriers": 4 + 6 * epoch, "void": int(epoch > 1)} if barriers else {}),
    }


def report(transport="switch", *, loss=1.0, traffic=True, kept=0, barriers=True):
    heard = []
    recorder = Recorder(WORKERS, heard.append)
    for epoch in range(1, EPOCHS + 1):
        accuracy = {"train": 0.5, "validation": None, "test": epoch / 10} if epoch == 3 else None
        for worker in reversed(range(WORKERS)):
            made = event(worker, epoch, loss=loss, accuracy=accuracy, barriers=barriers)
            recorder(worker, made)
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


def test_the_barriers_of_an_epoch_are_the_mean_without_the_first():
    made = report()
    assert (made.barriers_per_epoch, made.void_rounds) == (6, 1)
    made = report("host", barriers=False)
    assert (made.barriers_per_epoch, made.void_rounds) == (None, None)


def test_differences_are_those_from_local():
    reports = [report(), report("host", loss=1.5), report("local", traffic=False)]
    assert largest_difference(reports) == {"switch": 0.0, "host": 0.5}
    assert largest_difference(reports[:2]) == {}


def test_the_closing_line():
    reports = [report(), report("host"), report("local", traffic=False)]
    carried = "Carried: switch 0.0 MB; host 0.0 MB, 1.0 times as much; local nothing."
    agree = "The losses agree with those of one process, to 0.0e+00."
    assert closing_line(reports) == f"{carried} {agree}"
    assert closing_line(reports[:2]) == carried.replace("; local nothing", "")
    assert closing_line(reports[:1]) is None
    reports[1] = report("host", loss=1.5)
    differ = "The losses of host differ from those of one process by up to 5.0e-01."
    assert closing_line(reports) == f"{carried} {differ}"


def test_sums_that_were_kept_are_reported():
    assert kept_line([report(), report("host")]) is None
    assert "used again 21 times; --no-precompute" in kept_line([report(kept=21), report("host")])


def test_tables_fit_a_terminal():
    reports = [report("host-partial"), report("local", traffic=False)]
    console = Console(width=80, record=True)
    console.print(transports_table(reports))
    console.print(links_table(reports))
    text = console.export_text()
    assert "host-partial" in text
    assert "133.3%" in text
    assert "3 / 2" in text
    assert "…" not in text
    assert links_table(reports[1:]) is None


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
            assert f"<!-- {HOST.label}" in drawing


@pytest.mark.parametrize("blocked", ["matplotlib", "matplotlib.figure"])
def test_without_matplotlib_plots_say_what_to_install(monkeypatch, tmp_path, blocked):
    monkeypatch.setitem(sys.modules, blocked, None)
    with pytest.raises(PlotError, match=r"pip install .*\[plots\]"):
        draw_plots([report()], tmp_path)


def test_a_folder_for_plots_that_is_a_file(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(PlotError, match="Cannot write plots"):
        draw_plots([report()], tmp_path / "taken")


def test_events_hold_the_epochs(tmp_path):
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="TensorBoard is not installed",
    )
    accuracy = {"train": 0.5, "validation": None, "test": 0.25}
    with TrainEvents(tmp_path, "switch") as events:
        events.epoch(event(0, 1))
        events.epoch(event(0, 2, accuracy=accuracy))
    kept = accumulator.EventAccumulator(str(tmp_path / "switch"))
    kept.Reload()
    assert [(each.step, each.value) for each in kept.Scalars("loss")] == [(1, 1.0), (2, 0.5)]
    assert [each.value for each in kept.Scalars("accuracy/test")] == [0.25]
    assert "accuracy/validation" not in kept.Tags()["scalars"]
    assert [each.value for each in kept.Scalars("traffic/bytes_up")] == [10, 20]


def test_without_tensorboard_events_say_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(EventsError, match=r"pip install .*\[tensorboard\]"):
        TrainEvents(tmp_path, "switch")
