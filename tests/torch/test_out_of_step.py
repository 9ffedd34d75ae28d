"""Workers of a script that make other calls than the others: all end within seconds."""

import json
import re

import pytest

import switchgnn.torch as sg
from switchgnn.training import load_dataset
from tests.support.speed import seconds_here
from tests.torch.machines import one_machine

SCRIPT = r"""
import json
import sys
import threading
import time
import torch
import switchgnn.torch as sg
from switchgnn.base.errors import SwitchGNNError
from torch import nn
from torch_geometric.nn import SAGEConv

class Net(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.one, self.two = SAGEConv(features, 8), SAGEConv(8, 8)
        self.skip = False

    def forward(self, x, edges):
        h = self.one(x, edges).relu()
        return h if self.skip else self.two(h, edges)

def trained(worker, how):
    data, odd = worker.data, worker.number == 1
    model = worker.wrap(Net(data.num_features))
    for epoch in range(4):
        fault = how if epoch == 2 and odd else ""
        if epoch == 2:
            began[0] = time.monotonic()
        if fault == "early":
            return
        if fault == "extra":
            model(data.x, data.edge_index)
        if fault == "slow":
            time.sleep(6)
        if how in ("spread", "apart") and epoch == 2:
            model.two.reset_parameters()
        if how == "spread":
            worker.spread(model)
        model.skip = fault == "layer"
        loss = model(data.x, data.edge_index).square().mean()
        if fault != "backward":
            loss.backward()
        worker.reduce(model.two if fault == "unequal" else model, loss)

for how in sys.argv[1:]:
    began, told = [0.0], ""
    try:
        with sg.join("job", network="network.toml") as worker:
            number = worker.number
            torch.manual_seed(number)
            trained(worker, how)
    except SwitchGNNError as error:
        told = str(error)
    seconds = time.monotonic() - began[0]
    left = [each.name for each in threading.enumerate() if "exchange" in each.name]
    sys.stdout.write(json.dumps([how, number, seconds, told, left]) + "\n")
"""

ONE, TWO = "the exchange of layer one", "the exchange of layer two"
GRADIENTS = "the all-reduce of the gradients"
# What the workers are in.
FOUND = {
    "layer": (f"{TWO} (forward", f"{ONE} (backward"),
    "early": (f"{ONE} (forward", ""),
    "backward": (f"{TWO} (backward", GRADIENTS),
    "extra": (f"{TWO} (backward", f"{ONE} (forward"),
    "unequal": (f"{GRADIENTS} (689 ", f"{GRADIENTS} (137 "),
}


@pytest.mark.whole
def test_all_workers_end_within_seconds_and_name_both_sides(tmp_path):
    sg.write_job(load_dataset("karate"), 2, tmp_path / "job", slots=16)
    (tmp_path / "script.py").write_text(SCRIPT)
    hows = [*FOUND, "slow", "spread", "apart"]
    with one_machine(2, tmp_path) as machine:
        output = machine.torchrun("script.py", *hows)
    told = {how: {} for how in hows}
    for line in re.findall(r'\["\w+", [01], .*\]', output):
        how, number, seconds, sentence, left = json.loads(line)
        told[how][number] = sentence
        assert seconds < seconds_here(10), line
        assert not left, line
    for how, (zero, one) in FOUND.items():
        start = f"Worker 0 is in {zero}" if one else "Worker 1 has left the job, and worker 0 is in"
        assert told[how][0].startswith(start)
        assert f", and worker 1 in {one}" in told[how][0] or not one
        assert told[how][1] == (told[how][0] if one else "")
    assert told["slow"] == told["spread"] == {0: "", 1: ""}
    other = "The weights of worker 1 differ from those of worker 0, first in two.lin_l.weight: "
    assert all(sentence.startswith(other) for sentence in told["apart"].values())
