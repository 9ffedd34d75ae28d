"""The backend `switchgnn` in PyTorch programs: registered, started, and used by DDP and FSDP."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402

from switchgnn.base.network import Station  # noqa: E402
from switchgnn.base.tasks import TaskError, task_to_json  # noqa: E402
from switchgnn.host import Addresses, Pace  # noqa: E402
from switchgnn.host.links.transport import LinkConfig  # noqa: E402
from switchgnn.host.reduce.connection import VARIABLE, ReduceTask, task_from_environment  # noqa: E402
from switchgnn.torch_backend import register  # noqa: E402
from tests.support.markers import whole  # noqa: E402
from tests.support.speed import seconds_here  # noqa: E402
from tests.training.helpers import refusal  # noqa: E402

ROOT = Path(__file__).parents[2]
WORKERS = 3


def started(*words, path=ROOT, **variables):
    """A Python process that finds the packages in a path."""
    environment = {**os.environ, "PYTHONPATH": str(path), "OMP_NUM_THREADS": "1", **variables}
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def output_of(process):
    output, _ = process.communicate(timeout=seconds_here(120))
    assert process.returncode == 0, output[-4000:]
    return output


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What each of the processes of reducing_program.py has found."""
    folder = tmp_path_factory.mktemp("group")
    words = ("-m", "tests.training.reducing_program")
    processes = [started(*words, str(rank), str(WORKERS), folder) for rank in range(WORKERS)]
    try:
        for process in processes:
            output_of(process)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return [torch.load(folder / f"{rank}.pt") for rank in range(WORKERS)]


@whole
class TestPrograms:
    def test_losses_of_ddp_are_those_of_gloo(self, found):
        for each in found:
            assert each["backend"] == "switchgnn"
            assert each["switch"] == pytest.approx(each["gloo"], rel=1e-5)
            assert each["switch bfloat16"] == pytest.approx(each["gloo bfloat16"], rel=2**-6)
            assert each["fallbacks"] == {}
            # One bucket in the first step, and several in each of the others.
            assert each["arrays"] > 15

    def test_the_hook_takes_gradients_beside_another_backend(self, found):
        for each in found:
            assert each["hook"] == pytest.approx(each["gloo"], rel=1e-5)
            assert each["hook arrays"] > 15

    def test_fsdp_trains_as_ddp(self, found):
        for each in found:
            assert each["fsdp"] == pytest.approx(each["gloo"], rel=1e-5)

    def test_groups_of_some_workers_and_objects_go_through_gloo(self, found):
        assert [each["subgroup"] for each in found] == [3.0, 3.0, 3.0]
        assert [each["objects"] for each in found] == WORKERS * [[0, 1, 2]]

    def test_functional_collectives_use_the_switch(self, found):
        assert [each["functional"] for each in found] == WORKERS * [([2.0, 2.0, 2.0], 1)]

    def test_ddp_reports_which_worker_is_lost(self, found):
        for each in found:
            assert "Worker 1 has not sent its part." in each["error"]


@whole
@pytest.mark.parametrize("first", ["torch", "switchgnn.torch"])
def test_pytorch_finds_the_backend_when_it_is_imported(first, tmp_path):
    """As it does where SwitchGNN is installed, whichever of the two comes first."""
    installed = tmp_path / "switchgnn-0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: switchgnn\nVersion: 0\n")
    _, _, table = (ROOT / "pyproject.toml").read_text().partition('"torch.backends"]\n')
    (line,) = [line for line in table.splitlines()[:1] if line]
    (installed / "entry_points.txt").write_text(f"[torch.backends]\n{line.replace(chr(34), '')}\n")
    program = (
        f"import {first}, sys, torch.distributed as dist\n"
        "print(dist.Backend('switchgnn'), 'switchgnn.training' in sys.modules)"
    )
    output = output_of(started("-c", program, path=f"{tmp_path}{os.pathsep}{ROOT}"))
    # Our modules come when a group is made.
    assert output.split() == ["switchgnn", str(first != "torch")]


def test_a_program_without_a_launcher_gets_a_sentence(monkeypatch, tmp_path):
    register()
    monkeypatch.delenv(VARIABLE, raising=False)
    store = dist.FileStore(str(tmp_path / "store"), 1)
    with pytest.raises(RuntimeError, match=rf"no {VARIABLE} .* `switchgnn launch`"):
        dist.init_process_group("switchgnn", store=store, rank=0, world_size=1)
    assert not dist.is_initialized()


def station(number):
    return Station(ip=f"10.0.0.{number}", mac=f"02:00:00:00:00:{number:02x}")


TASK = ReduceTask(
    ends=tuple(
        LinkConfig(each, f"udp:127.0.0.1:{each}", Addresses(station(each), station(9)))
        for each in range(2)
    ),
    pace=Pace(window=100),
)


@pytest.mark.parametrize(
    ("text", "workers", "part", "kind"),
    [
        (task_to_json(TASK), 3, "serves 2 workers, but this group has 3", None),
        (None, 2, "cannot be read", None),
        ("{}", 2, "cannot be read", TaskError),
    ],
)
def test_a_task_for_others_is_refused(text, workers, part, kind, monkeypatch, tmp_path):
    file = tmp_path / "task.json"
    if text is not None:
        file.write_text(text)
    monkeypatch.setenv(VARIABLE, str(file))
    with refusal(part, *([kind] if kind else [])):
        task_from_environment(workers)
