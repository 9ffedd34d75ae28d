"""Trainings whose switch is killed, stopped or started again while they run, over loopback."""

import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest

from switchgnn.host.base.pace import Pace
from switchgnn.jobs import train
from switchgnn.jobs.workers import training_forkserver
from switchgnn.topologies import FABRICS, FabricKind
from switchgnn.topologies.loopback_fabric import LoopbackFabric
from switchgnn.training.base.options import ModelOptions, ReduceBy, TrainOptions
from switchgnn.training.data.load import load_dataset
from switchgnn.training.train_worker import TrainTask
from switchgnn.training.trainer import Training
from tests.support.speed import seconds_here

WORKERS, EPOCHS, KILLED_IN = 8, 16, 6
BACK_AFTER = 0.5
# Sums in fixed point are as near to those of hosts.
NEAR = 1e-4


class Unsteady(LoopbackFabric):
    """Keeps what its switch was started with."""

    def _start_switch(self, *where, **more):
        self.started = where, more
        super()._start_switch(*where, **more)

    def start_again(self):
        self._switches.pop().stop()
        where, more = self.started
        self._start_switch(*where, **more)


def trained(monkeypatch, reduce, disturb, epochs=EPOCHS):
    """Return the report; `disturb` is called with the fabric in an epoch."""
    made = []

    def fabric(*arguments, **options):
        made.append(Unsteady(*arguments, **options))
        return made[-1]

    monkeypatch.setitem(FABRICS, FabricKind.LOOPBACK, fabric)
    data = load_dataset("karate")
    options = TrainOptions(epochs=epochs)
    pace = Pace(window=128, skew=train.SKEW)
    task = TrainTask(
        training=Training(ModelOptions(), options), transport="switch", pace=pace, reduce=reduce
    )
    job = train.TrainJob(
        workers=WORKERS,
        slots=64,
        target="embedded",
        fabric="loopback",
        bandwidth=None,
        ecn_threshold=0,
        task=task,
    )
    planned = train.plan_of(job, data, lambda _: None)
    paths = train.predict_paths(job, data, planned[1], "switch", keep_reduce=True)
    job = replace(job, planned=planned, task=replace(task, adapt=paths))

    def on_epoch(event):
        if event["epoch"] == KILLED_IN:
            disturb(made[0])

    with training_forkserver() as forkserver:
        return train.run_training(job, data, lambda *_: None, on_epoch, forkserver=forkserver)


def kill(fabric):
    os.kill(fabric.switch_processes[0], signal.SIGKILL)


def kill_and_start_again(fabric):
    kill(fabric)
    threading.Timer(BACK_AFTER, fabric.start_again).start()


def pause(fabric):
    (switch,) = fabric.switch_processes
    os.kill(switch, signal.SIGSTOP)
    threading.Timer(2 * BACK_AFTER, os.kill, (switch, signal.SIGCONT)).start()


def told(report):
    return [each["why"] for each in report.changes if "why" in each]


@pytest.mark.parametrize("reduce", [ReduceBy.GLOO, ReduceBy.SWITCH])
def test_no_epoch_is_lost_with_the_switch(monkeypatch, reduce):
    steady = trained(monkeypatch, reduce, lambda _: None)
    report = trained(monkeypatch, reduce, kill)
    assert np.allclose(report.losses, steady.losses, rtol=NEAR)
    assert len(told(report)) == 1 and told(report)[0].startswith("switch silent for")
    assert max(report.seconds[1:]) - report.epoch_seconds < seconds_here(2.0)


@pytest.mark.parametrize("disturb", [kill_and_start_again, pause])
def test_workers_go_back_to_a_switch_that_answers_again(monkeypatch, disturb):
    report = trained(monkeypatch, ReduceBy.SWITCH, disturb, epochs=600)
    assert len(report.losses) == 600
    assert "switch answers again" in told(report)
