"""With its extra a command of the wheel works, without it one sentence names the extra."""

import importlib.metadata
import os
import re
from pathlib import Path

import pytest

from tests.support.installed import build, copy_of_the_checkout, environment_of
from tests.support.levels import mininet_missing
from tests.support.processes import run_program

pytestmark = pytest.mark.whole

HERE = "--target embedded --fabric loopback"
KARATE = f"run --graph karate --workers 3 {HERE}"
TRAIN = f"train --data karate --workers 2 --epochs 2 --transport switch {HERE}"
DDP = Path(__file__).parent.parent / "examples/ddp/train.py"
LAUNCH = f"launch --workers 2 {HERE} {DDP}"
# Commands that need an extra, in an order that each can have.
NEEDS = {
    "training": (TRAIN, LAUNCH),
    "plots": ("plan karate --workers 3 --slots 16 --plots plots",),
    "hypergraph": ("plan karate --workers 3 --slots 16 --blocks hypergraph",),
    "mininet": ("run --graph karate --workers 3 --target embedded --fabric mininet",),
}
# What every installation can do.
ALWAYS = (
    *("--help", "doctor", f"{KARATE} --pcap packets", f"{KARATE} --metrics 9464"),
    *(f"{KARATE} --backend python", "capture packets --details"),
    "plan karate --workers 3 --slots 16 --out plan",
    "plan --data karate --workers 2 --parts --out job",
    "simulate --graph karate --workers 3 --system best",
    *(f"allreduce --workers 2 --bytes 4096 {HERE}", "network init --help", "switch --help"),
    *("controller show --help", "live --help", "figures --help"),
)
# Sentences without an extra; with one they need more than can be had everywhere.
ALSO = {
    "training": "train --data ogbn-products --workers 2",
    "live": f"{KARATE} --live",
    "plots": "figures figure2",
}
API = ("planner", "profiles", "controller", "host", "topologies", "softswitch", "p4src", "capture")
MODULES = {
    "training": ("torch", "training", "train"),
    "live": ("live.server", "live.polling", "commands.shared.outputs"),
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built")
    return build("wheel", copy_of_the_checkout(folder / "tree"), folder / "dist")


@pytest.fixture
def installed(request, wheel, tmp_path):
    """Runs Python in an environment with an extra."""
    extra = getattr(request, "param", None)
    try:
        python = environment_of(wheel, tmp_path / "environment", extra)
    except importlib.metadata.PackageNotFoundError as error:
        pytest.skip(f"the extra {extra} needs {error.name}, which is not installed")
    known = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*arguments):
        return run_program([python, *arguments], cwd=tmp_path, env=known)

    return run


def succeeds(installed, command):
    done = installed("-m", "switchgnn", *command.split())
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def imports(installed, modules):
    done = installed("-c", "".join(f"import switchgnn.{name}\n" for name in modules))
    assert done.returncode == 0, done.stderr


def names_the_extra(installed, command, extra):
    done = installed("-m", "switchgnn", *command.split())
    said = " ".join(done.stderr.split())
    assert done.returncode == 2, f"{command}\n{done.stdout}{done.stderr}"
    assert "Traceback" not in said
    assert re.search(rf"Error: .*pip install 'switchgnn\[{extra}\]'", said), said


def test_without_an_extra_all_else_works_and_each_is_named(installed):
    for command in ALWAYS:
        succeeds(installed, command)
    imports(installed, API)
    for extra, commands in NEEDS.items():
        if extra != "mininet" or mininet_missing() is None:
            for command in commands:
                names_the_extra(installed, command, extra)
    for extra, command in ALSO.items():
        names_the_extra(installed, command, extra)
    done = installed("-c", "import switchgnn.torch")
    assert "pip install 'switchgnn[training]'" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("installed", sorted({*NEEDS, *MODULES}), indirect=True)
def test_an_extra_by_itself_is_enough(installed, request):
    extra = request.node.callspec.params["installed"]
    if extra == "mininet" and mininet_missing() is not None:
        pytest.skip(mininet_missing())
    for command in NEEDS.get(extra, ()):
        succeeds(installed, command)
    imports(installed, MODULES.get(extra, ()))
    if extra == "training":
        names_the_extra(installed, f"{TRAIN} --tensorboard events", "tensorboard")
