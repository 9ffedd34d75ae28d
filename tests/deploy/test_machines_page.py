"""docs/machines.md, played through: namespaces are the machines, each with a folder of its own."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

from switchgnn.planner.plan.files import read_manifest  # noqa: E402
from switchgnn.topologies import Target  # noqa: E402
from switchgnn.topologies.child import Child, temporary_files_in  # noqa: E402
from switchgnn.training import load_dataset  # noqa: E402
from switchgnn.training.job import read_job  # noqa: E402
from tests.deploy.test_units import DEPLOY  # noqa: E402
from tests.support.commands import switchgnn  # noqa: E402
from tests.support.markers import TARGETS, full, needs_bmv2, needs_root  # noqa: E402
from tests.support.networks import in_network, own_network  # noqa: E402
from tests.support.speed import seconds_here  # noqa: E402
from tests.support.waiting import wait_until  # noqa: E402
from tests.torch.test_restart import children_of, epochs  # noqa: E402
from tests.training.plain_loop import train_plainly  # noqa: E402

pytestmark = [pytest.mark.whole, needs_root]
ROOT = DEPLOY.parent
PAGE = ROOT / "docs/machines.md"
BLOCKS = re.findall(r"^```bash\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
*SETUP, DOCTOR, TRAIN, LIVE, METRICS, TRANSPORTS = (b.strip() for b in BLOCKS)
JOB, DRAFT, PLACE, SHARED, SWITCH, BMV2 = SETUP
WORKERS, EPOCHS, KILLED, KILLED_AT = 4, 30, 2, 5
SECONDS = 200


class Machine:
    """A namespace and a folder."""

    def __init__(self, name, network, folder, address):
        self.name = name
        self.network = network
        self.folder = folder
        self.address = address

    def child(self, command):
        """A command of the page, to be started as a context manager."""
        program, *words = shlex.split(command)
        # The project's own is the one of this environment.
        found = shutil.which(program, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        assert found is not None, program
        inside = ["nsenter", f"--net={self.network.path}", "env", f"--chdir={self.folder}"]
        variables = {"PYTHONPATH": str(ROOT)} | temporary_files_in(self.folder)
        log = self.folder / f"{program}-{len(list(self.folder.iterdir()))}.log"
        return Child(self.name, [*inside, found, *words], log, pipe=True, environment=variables)

    def run(self, command):
        """Run one that ends by itself; return what it prints."""
        with self.child(command) as child:
            child.stdin.close()
            output = child.stdout.read()
            code = child.wait(seconds_here(SECONDS))
            assert code == 0, f"{command}\n{output}\n{child.log.read_text()}"
        return output


@contextmanager
def machines(folder):
    """The switch and the workers, in a LAN and with their links."""
    with ExitStack() as stack:
        lan = stack.enter_context(own_network())
        ip(lan, "link add br0 type bridge")
        ip(lan, "link set br0 up")
        made = []
        for number, name in enumerate(["switch", *(f"worker-{n}" for n in range(WORKERS))]):
            network = stack.enter_context(own_network())
            (folder / name).mkdir()
            cable("eth0", network, f"e{number}", lan)
            ip(lan, f"link set e{number} master br0")
            ip(network, f"addr add 192.0.2.{10 + number}/24 dev eth0")
            made.append(Machine(name, network, folder / name, f"192.0.2.{10 + number}"))
        switch, *workers = made
        for number, worker in enumerate(workers, 1):
            cable("data0", worker.network, f"port{number}", switch.network)
        yield switch, workers


def cable(name, network, other_name, other):
    pair = f"link add {name} netns {network.pid} type veth peer name {other_name}"
    subprocess.run(["ip", *pair.split(), "netns", str(other.pid)], check=True, capture_output=True)
    ip(network, f"link set {name} up")
    ip(other, f"link set {other_name} up")


def ip(network, words):
    with in_network(network.path):
        subprocess.run(["ip", *words.split()], check=True, capture_output=True)


def scraped(machine, address):
    program = f"import urllib.request as r; print(r.urlopen('{address}').read().decode())"
    return machine.run(f"python -c {shlex.quote(program)}")


def shown(machine, page):
    """What a page there shows once it has seen the second session."""
    where = r"^Live: (http://127\.0\.0\.1:\d+/)$"
    [address] = re.findall(where, page.log.read_text(), re.MULTILINE)
    program = (
        "import json, time, urllib.request as r\n"
        "seen = {'step': ''}\n"
        "while seen['step'] != 'session 2' or not seen['switches'][0]['values']:\n"
        "    time.sleep(0.1)\n"
        f"    seen = json.load(r.urlopen('{address}metrics.json'))\n"
        "print(json.dumps(seen))\n"
    )
    return json.loads(machine.run(f"python -c {shlex.quote(program)}"))


@contextmanager
def serving(switch, target):
    """The page's switch of that kind, when it serves."""
    with switch.child(SWITCH if target is Target.EMBEDDED else BMV2) as service:
        if target is Target.EMBEDDED:
            wait_until((switch.folder / "switch.ready").exists, "a switch that serves", 60)
        else:
            wait_until(lambda: listens(switch), "a switch that listens", 60)
        yield service


def listens(switch):
    """Whether somebody takes connections at the switch, where P4Runtime is to be."""
    with in_network(switch.network.path), socket.socket() as client:
        return client.connect_ex((switch.address, 9559)) == 0


@pytest.mark.parametrize(
    "target", [TARGETS[0], pytest.param(Target.BMV2, id="bmv2", marks=[needs_bmv2, full])]
)
def test_from_the_job_to_a_trained_model(tmp_path, target):
    with machines(tmp_path) as (switch, workers), ExitStack() as stack:
        workers[0].run(TRANSPORTS)
        workers[0].run(JOB)
        for other in workers[1:]:
            shutil.copytree(workers[0].folder / "job", other.folder / "job")
            for part in (other.folder / "job" / "parts").glob("partition-*.safetensors"):
                if part.name != f"partition-{workers.index(other):03d}.safetensors":
                    part.unlink()  # a worker needs its own part only
        draft = DRAFT if target is Target.EMBEDDED else f"{DRAFT} --target {target.value}"
        assert "4 workers around switch s0" in switch.run(draft)
        last = switch.folder / "network.toml"
        for number, worker in enumerate(workers):
            shutil.copy(last, worker.folder)
            told = worker.run(PLACE.replace("worker 0", f"worker {number}"))
            assert re.match(
                rf"Worker {number} is [0-9a-f:]+, 10\.0\.0\.{number + 1}, on data0", told
            )
            last = worker.folder / "network.toml"
        for machine in (switch, *workers[:-1]):
            shutil.copy(last, machine.folder)
        service = stack.enter_context(serving(switch, target))
        for machine in (switch, workers[1]):
            assert "P4Runtime at" in " ".join(machine.run(f"{DOCTOR} --json").split())
        metrics = stack.enter_context(switch.child(METRICS.replace("9560", "0")))
        address = re.search(r"http://\S+", metrics.stdout.readline()).group()
        page = stack.enter_context(switch.child(LIVE))
        told, own = train(workers)
        counted = scraped(switch, address)
        seen = shown(switch, page)
        service.stop()
    assert seen["step"] == "session 2"
    (drawn,) = seen["switches"]
    assert drawn["values"]["contributions_total"] > 0
    assert [worker["served"] for worker in seen["workers"]] == [True] * WORKERS
    for name, value in (("up", 1.0), ("session", 2.0), ("plan_workers", WORKERS)):
        assert re.search(
            rf"^switchgnn_(switch_)?{name}\{{.*\}} {float(value)}$", counted, re.MULTILINE
        ), counted[:2000]
    assert re.search(r'^switchgnn_worker_rounds_total\{worker="1"\} [1-9]', own, re.MULTILINE), own
    numbers = [number for number, _ in told]
    assert sorted(set(numbers)) == list(range(1, EPOCHS + 1))
    assert EPOCHS <= len(numbers) <= EPOCHS + 3
    expected, _, _ = train_plainly(
        load_dataset("karate"), model="gcn", layers=2, hidden=16, epochs=EPOCHS, seed=0
    )
    for number, loss in told:
        assert loss == pytest.approx(expected[number - 1], abs=5e-5)


def train(workers):
    """Train as the page says, kill a worker; return epochs and what worker 1 told Prometheus."""
    with ExitStack() as stack:
        running = []
        for number, machine in enumerate(workers):
            command = TRAIN.replace("--local-addr 192.0.2.11", f"--local-addr {machine.address}")
            if number:
                command = command.replace("is_host=1", "is_host=0")
            running.append(stack.enter_context(machine.child(command)))
            running[-1].stdin.close()
        lines, killed, own = [], False, ""
        # Which machine has worker 0, its interface says: the first one.
        for line in running[0].stdout:
            lines.append(line)
            if not killed and len(epochs(lines)) == KILLED_AT:
                own = scraped(workers[1], f"http://{workers[1].address}:9561/metrics")
                os.kill(children_of(running[KILLED].pid)[-1], signal.SIGKILL)
                killed = True
        for child in running:
            assert child.wait(seconds_here(SECONDS)) == 0, child.log.read_text()[-4000:]
    assert killed
    return epochs(lines), own


def test_the_job_of_workers_that_share_ports_is_for_as_many_machines(tmp_path):
    result = switchgnn(*shlex.split(SHARED)[1:], folder=tmp_path)
    assert result.returncode == 0, result.stderr
    job = read_job(tmp_path / "job")
    assert (job.workers, job.workers_per_machine) == (8, 2)
    assert read_manifest(tmp_path / "job" / "plan").workers == 4
