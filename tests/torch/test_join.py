"""Who may join: the right number of workers, on the network that the job is for."""

import json
import re
import sys
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import switchgnn.torch as sg
from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.network import NetworkError
from switchgnn.base.network_file import Target, network_text, read_network
from switchgnn.controller.base.errors import PlanRefusedError, SwitchUnreachableError
from switchgnn.controller.target import client_of, served_jobs
from switchgnn.planner import Direction, PlanRequest
from switchgnn.training import load_dataset
from switchgnn.training.joining import open_session
from tests.network.usual import described_leaf_spine, described_star
from tests.support.speed import seconds_here
from tests.torch.machines import one_machine
from tests.training.plain_loop import train_plainly


@pytest.fixture(scope="module")
def karate():
    return load_dataset("karate")


@pytest.fixture
def folder(tmp_path, karate, monkeypatch):
    sg.write_job(karate, 2, tmp_path / "job", slots=16)
    write(tmp_path, described_star(2))
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    return tmp_path


def write(folder, network):
    (folder / "network.toml").write_text(network_text(network))


def refused(folder, kind=sg.JobError):
    with pytest.raises(kind) as error, sg.join(folder / "job", network=folder / "network.toml"):
        pytest.fail("it was let in")
    return str(error.value)


def test_a_process_that_is_no_worker(folder, monkeypatch):
    monkeypatch.delenv("RANK")
    assert "start the script with torchrun" in refused(folder)


def test_another_number_of_workers(folder, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert "is for 2 workers, and 3 were started" in refused(folder)


def test_another_network(folder):
    write(folder, described_star(3))
    assert "is for 2 workers, and the network has 3" in refused(folder)
    write(folder, described_leaf_spine((0, 1), 1))
    assert "other leaves and spines" in refused(folder)
    (folder / "network.toml").unlink()
    assert "Cannot read the network" in refused(folder, NetworkError)


def test_local_workers_without_a_network_file_that_has_them(folder, monkeypatch):
    star = described_star(2)
    shared = [replace(worker, processes=2) for worker in star.workers]
    write(folder, replace(star, workers=tuple(shared)))
    assert "has workers_per_machine = 1, and a worker of the network has" in refused(folder)
    write(folder, star)
    (own, _) = star.workers
    here = (SimpleNamespace(name=own.interface, mac=own.mac),)
    monkeypatch.setattr("switchgnn.training.joining.interfaces", lambda: here)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert "torchrun has started 2 processes here, and worker 0 of the" in refused(folder)


@pytest.mark.whole
def test_the_processes_of_two_machines_train_like_one_process(tmp_path, karate):
    sg.write_job(karate, 4, tmp_path / "job", slots=16, workers_per_machine=2)
    words = ("-m", "switchgnn.train", "job", "--hidden", 8, "--dropout", 0, "--epochs", 5, "--json")
    with one_machine(2, tmp_path) as machine:
        text = (tmp_path / "network.toml").read_text()
        shared = text.replace("[[workers]]\n", "[[workers]]\nprocesses = 2\n")
        (tmp_path / "network.toml").write_text(shared)
        machine.workers = 4
        told = json.loads(machine.torchrun(*words).splitlines()[-1])
    losses, _, _ = train_plainly(karate, model="gcn", layers=2, hidden=8, epochs=5, seed=0)
    assert told["last"]["loss"] == pytest.approx(losses[-1], rel=3e-6)


def test_a_switch_that_is_not_there(folder, karate, monkeypatch):
    sg.write_job(karate, 1, folder / "job", slots=16)
    network = described_star(1, grpc=f"unix:{folder}/nobody", target=Target.EMBEDDED)
    link = replace(network.workers[0], interface="", link="udp:127.0.0.1:1:127.0.0.1:2")
    write(folder, replace(network, workers=(link,)))
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setattr("switchgnn.training.joining.client_of", partial(client_of, deadline=0.5))
    assert "nobody" in refused(folder, SwitchUnreachableError)


def test_a_plan_for_others_is_not_installed(folder):
    with pytest.raises(PlanRefusedError, match="is for 2 workers; the network has 3"):
        open_session(folder / "job" / "plan", described_star(3))


def test_jobs_of_two_network_files_are_on_one_switch(folder):
    """Neither file has the other one's workers, and neither job asks for the other one's ports."""
    with one_machine(4, folder):
        whole = read_network(folder / "network.toml")
        halves = {"a": whole.workers[:2], "b": whole.workers[2:]}
        sessions = []
        for job, workers in halves.items():
            write(folder, replace(whole, workers=workers, job=job))
            network = read_network(folder / "network.toml")
            sessions.append(open_session(folder / "job" / "plan", network))
        with client_of(whole.switches[0], primary=False) as client:
            served = {place.name: (place.ports, there) for place, there in served_jobs(client)}
        ports = {job: tuple(each.port for each in workers) for job, workers in halves.items()}
        assert {job: here for job, (here, _) in served.items()} == ports
        assert [served[job][1].session for job in halves] == sessions
        assert sessions[0] != sessions[1]


# Each line is one write: torchrun's processes are not buffered, so that `print` writes in pieces,
# and another process's line may come between them.
SCRIPT = r"""
import sys
import torch
import torch.nn.functional as F
import switchgnn.torch as sg
from switchgnn.base.errors import SwitchGNNError
from torch_geometric.nn import GAT, GCN

def trained(worker, kind=GCN, **fewer):
    torch.manual_seed(0)
    data, losses = worker.data, []
    model = worker.wrap(kind(data.num_features, 8, 2, worker.classes), **fewer)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(4):
        optimizer.zero_grad()
        out, train = model(data.x, data.edge_index), data.train_mask
        loss = worker.mean(F.cross_entropy(out[train], data.y[train], reduction="sum"))
        loss.backward()
        losses.append(float(worker.reduce(model, loss)))
        optimizer.step()
        right = (out.argmax(dim=1) == data.y)[train].sum()
        worker.note_accuracy(float(worker.sum(right)) / worker.job.train)
    return losses

for job in sys.argv[1:]:
    job, _, over = job.partition(":")
    with sg.join(job, network="network.toml", transport=over or "switch") as worker:
        sys.stdout.write(f"losses {job} {trained(worker)}\n")
        if over == "host":
            sys.stdout.write(f"copies {trained(worker, GAT)}\n")
        if job == "cut":
            ids = torch.arange(34)
            right = worker.rows(worker.data.n_id.short(), ids).tolist() == ids.tolist()
            mean = worker.mean(worker.data.n_id.float(), dim=0)
            sys.stdout.write(f"own {right} {float(mean)}\n")

with sg.join("forward", network="network.toml") as worker:
    sys.stdout.write(f"copies {trained(worker, GAT)}\n")

for each in ("nothing:switch", "nothing:host", "nothing:g3", "some:switch"):
    job, _, over = each.partition(":")
    try:
        with sg.join(job, network="network.toml", transport=over) as worker:
            losses = trained(worker, bits=8, cache="auto")
            sys.stdout.write(f"fewer {worker.epsilon} {losses}\n")
    except SwitchGNNError as error:
        sys.stdout.write(f"refused fewer: {error}\n")

for network in ("network.toml", "network.toml", "far.toml"):
    try:
        with sg.join("nothing", network=network) as worker:
            total = worker.sum(torch.tensor([1.0 + worker.number, 2.0]))
            model = worker.wrap(GCN(worker.data.num_features, 4, 2, worker.classes))
            loss = worker.mean(model(worker.data.x, worker.data.edge_index).sum(), count=10)
            loss.backward()
            shared = worker.reduce(model, loss)
            whole = worker.gather(worker.data.n_id)
            told = None if whole is None else whole.tolist() == list(range(len(whole)))
            ids = torch.arange(34)[34 * worker.number :].flip(0)
            fetched = worker.rows(worker.data.n_id.short(), ids).tolist() == ids.tolist()
            sums = f"{total.tolist()} {shared:.6f} {fetched}"
            sys.stdout.write(f"told {worker.session} {sums} {told}\n")
    except SwitchGNNError as error:
        sys.stdout.write(f"refused: {error}\n")
"""
KINDS = ("nothing", "some", "forward", "backward", "everything")
OVER = [f"nothing:{each}" for each in ("host", "host-partial", "g3", "auto")]
OVER += ["cut:switch", "cut:host-partial"]


@pytest.fixture(scope="module")
def output(tmp_path_factory, karate):
    """The output of the script, whose jobs leave some destinations to the hosts."""
    folder = tmp_path_factory.mktemp("join")
    everything = np.ones(karate.vertices, dtype=bool)
    left = (
        None,
        {
            Direction.FORWARD: np.diff(karate.graph.indptr) <= 3,
            Direction.BACKWARD: np.arange(karate.vertices) % 3 == 0,
        },
        {Direction.FORWARD: everything},
        {Direction.BACKWARD: everything},
        everything,
    )
    for name, chosen in zip(KINDS, left, strict=True):
        copies, over = name == "forward", ["host", "host-partial", "g3", "auto"]
        over = {"copies": copies, "transports": over if chosen is None else ()}
        sg.write_job(karate, 2, folder / name, slots=16, left=chosen, **over)
    cut = {"request": PlanRequest(partition="vertex-cut"), "transports": ["host-partial"]}
    sg.write_job(karate, 2, folder / "cut", slots=16, **cut)
    (folder / "script.py").write_text(SCRIPT)
    with one_machine(2, folder) as machine:
        text = (folder / "network.toml").read_text()
        (folder / "far.toml").write_text(text.replace('"unix:', '"unix:/far'))
        return machine.torchrun("script.py", *KINDS, *OVER)


@pytest.mark.whole
def test_what_a_plan_leaves_to_hosts_changes_no_loss(output):
    found = re.findall(r"losses (\w+) (\[.+\])\n", output)
    assert sorted(name for name, _ in found) == sorted(
        [*KINDS, *(each.partition(":")[0] for each in OVER)] * 2
    )
    expected = next(json.loads(losses) for name, losses in found if name == "nothing")
    assert len(expected) == 4
    for name, losses in found:
        assert json.loads(losses) == pytest.approx(expected, abs=1e-4), name


@pytest.mark.whole
def test_rows_and_means_of_a_script_count_each_vertex_once(output):
    assert re.findall(r"own (\w+) (\S+)\n", output) == 4 * [("True", "16.5")]


@pytest.mark.whole
def test_a_script_sends_changes_of_few_bits_unless_hosts_make_some_sums(output):
    expected = json.loads(re.search(r"losses nothing (\[.+\])\n", output)[1])
    found = re.findall(r"\bfewer (\S+) (\[.+\])\n", output)
    assert len(found) == 4
    for epsilon, losses in found:
        assert json.loads(losses) == pytest.approx(expected, abs=0.02)
        # The accuracy rises in these epochs.
        assert float(epsilon) > 0.01
    refusals = re.findall(r"refused fewer: (.*)\n", output)
    assert len(refusals) == 4
    assert all("has neither a cache nor fewer bits" in refusal for refusal in refusals)


@pytest.mark.whole
def test_copies_over_a_transport_are_those_of_gloo(output):
    found = re.findall(r"copies (\[.+\])\n", output)
    over, gloo = np.split(np.array([*map(json.loads, found)]), 2)
    assert over.shape == gloo.shape == (2, 4)
    assert over == pytest.approx(gloo, abs=1e-5)


@pytest.mark.parametrize("transport", ["host", "hosst"])
def test_an_error_that_nobody_catches_is_one_sentence(folder, monkeypatch, capsys, transport):
    told = []
    monkeypatch.setattr("sys.excepthook", lambda *error: told.append(error))
    where = {"network": folder / "network.toml", "transport": transport}
    with pytest.raises(SwitchGNNError) as error, sg.join(folder / "job", **where):
        pytest.fail("it was let in")
    sys.excepthook(error.type, error.value, error.tb)
    sys.excepthook(KeyError, KeyError("theirs"), None)
    monkeypatch.setenv("SWITCHGNN_TRACEBACK", "1")
    sys.excepthook(error.type, error.value, error.tb)
    assert [kind for kind, *_ in told] == [KeyError, error.type]
    assert capsys.readouterr().err == f"Error: {error.value}\n"


@pytest.mark.whole
def test_each_join_has_a_session_of_its_own_in_which_workers_agree(output):
    by_session = {}
    # Gloo also prints to standard output.
    for session, sums, whole in re.findall(r"told (\d+) (.+) (True|None)\n", output):
        by_session.setdefault(int(session), []).append((sums, whole))
    assert len(by_session) == 2
    for both in by_session.values():
        sums, whole = zip(*both, strict=True)
        assert set(whole) == {"True", "None"}
        assert len(set(sums)) == 1
        assert sums[0].startswith("[3.0, 4.0]")
        assert sums[0].endswith(" True")
    # If worker 0 reaches no switch, the other worker does not wait for a session.
    refusals = re.findall(r"refused: (.*)\n", output)
    assert len(refusals) == 2
    assert "Worker 0 could not open a session on the switches; see its own error." in refusals
    assert any("/far" in line for line in refusals)


# Of three workers, the last one has cores of its own.
THREADS = r"""
import os
import sys
import torch
import torch.distributed as dist
import switchgnn.torch as sg

rank = int(os.environ["RANK"])
cores = {0, 1} if rank == 2 else set(range(12))
os.sched_getaffinity = lambda _: cores
torch.set_num_threads(8)
dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/met", rank=rank, world_size=3)
with sg.join("job", network="network.toml"):
    sys.stdout.write(f"{rank}: {torch.get_num_threads()} threads\n")
dist.destroy_process_group()
"""


@pytest.mark.full
@pytest.mark.whole
def test_workers_of_one_machine_share_its_cores(tmp_path, karate):
    sg.write_job(karate, 3, tmp_path / "job", slots=16)
    (tmp_path / "script.py").write_text(THREADS)
    with one_machine(3, tmp_path) as machine, ExitStack() as stack:
        variables = ("--unset=OMP_NUM_THREADS", "WORLD_SIZE=3")
        started = [
            stack.enter_context(
                machine.child([*variables, f"RANK={rank}", sys.executable, "script.py"])
            )
            for rank in range(3)
        ]
        told = []
        for child in started:
            child.stdin.close()
            told += re.findall(r"\d: \d+ threads", child.stdout.read())
            assert child.wait(seconds_here(100)) == 0, child.log.read_text()[-4000:]
    assert told == ["0: 6 threads", "1: 6 threads", "2: 2 threads"]
