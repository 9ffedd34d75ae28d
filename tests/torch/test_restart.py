"""The trainer under torchrun: losses of one process, also when a worker is killed meanwhile."""

import os
import re
import signal
from pathlib import Path

import pytest

import switchgnn.torch as sg
from switchgnn.training import load_dataset
from tests.support.speed import seconds_here
from tests.torch.machines import SECONDS, one_machine
from tests.training.plain_loop import train_plainly

EPOCHS, WORKERS, KILLED_AT = 12, 2, 4


def test_a_killed_worker_comes_back_and_goes_on_from_the_last_checkpoint(tmp_path):
    data = load_dataset("karate")
    sg.write_job(data, WORKERS, tmp_path / "job", slots=16)
    options = f"--dropout 0 --epochs {EPOCHS} --evaluate-every 1 --checkpoint saved"
    with one_machine(WORKERS, tmp_path) as machine:
        words = machine.torchrun_words(
            *("--max-restarts", "1", "-m", "switchgnn.train", "job", *options.split())
        )
        with machine.child(words) as child:
            child.stdin.close()
            lines = []
            for line in child.stdout:
                lines.append(line)
                if f"epoch {KILLED_AT} of" in line and len(epochs(lines)) == KILLED_AT:
                    os.kill(children_of(child.pid)[-1], signal.SIGKILL)
            assert child.wait(seconds_here(SECONDS)) == 0, child.log.read_text()[-4000:]
    told = epochs(lines)
    numbers = [number for number, _ in told]
    # The second process resumes from the first one's checkpoint.
    assert numbers[:KILLED_AT] == list(range(1, KILLED_AT + 1))
    assert numbers[-1] == EPOCHS
    assert sorted(set(numbers)) == list(range(1, EPOCHS + 1))
    assert len(numbers) <= EPOCHS + 2
    expected, _, _ = train_plainly(
        data, model="gcn", layers=2, hidden=16, epochs=EPOCHS, seed=0, rate=0.01, decay=5e-4
    )
    for number, loss in told:
        assert loss == pytest.approx(expected[number - 1], abs=2e-5)


def epochs(lines):
    found = re.findall(r"epoch (\d+) of \d+: loss ([\d.]+)", "".join(lines))
    return [(int(number), float(loss)) for number, loss in found]


def children_of(pid):
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
