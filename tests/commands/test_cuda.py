"""Training where PyTorch has CUDA: no process forks after it has initialised the driver.

A stand-in needs no GPU: it takes the import of PyTorch Geometric, which initialises the driver, for
the initialisation, and notes each fork with what came before it.
"""

import os
import sys
from collections import Counter

import pytest

from tests.support.gpu import cuda_missing
from tests.support.processes import run_program

pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

# Python imports a module of this name when it starts.
STAND_IN = """
import ctypes, importlib.abc, importlib.machinery, os, sys

initialised = False

def note(word):
    with open(os.environ["NOTES"], "a") as file:
        file.write(word + "\\n")

def forks():
    note("forked after" if initialised else "forked before")

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name not in ("torch_geometric", "torch.version"):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        execute = spec.loader.exec_module
        def exec_module(module):
            global initialised
            if name == "torch_geometric":
                initialised = True
                note("initialised")
            execute(module)
            if name == "torch.version":
                module.cuda = os.environ["TORCH_CUDA"] or None
        spec.loader.exec_module = exec_module
        return spec

load = ctypes.CDLL

class Library(load):
    def __init__(self, name, *args, **options):
        driver = name == "libcuda.so.1" and os.environ["DRIVER"]
        super().__init__(None if driver else name, *args, **options)

ctypes.CDLL = Library
sys.meta_path.insert(0, Finder())
os.register_at_fork(before=forks)
"""
TRAIN = (
    *("train", "--data", "karate", "--workers", "2", "--epochs", "1"),
    *("--transport", "switch", "--transport", "local"),
    *("--target", "embedded", "--fabric", "loopback"),
)
# The forkserver; the switch, two workers, and the one process of `local`, each with its keeper.
FORKS = 1 + 2 * 4


@pytest.mark.whole
@pytest.mark.skipif(cuda_missing() is None, reason="there is a GPU: the test below trains on it")
@pytest.mark.parametrize(
    ("cuda", "driver", "before"),
    [("13.0", "yes", FORKS), ("13.0", "", 0), ("", "yes", 0)],
    ids=["cuda", "cuda without a driver", "cpu"],
)
def test_workers_are_forked_before_the_driver_is_initialised(tmp_path, cuda, driver, before):
    (tmp_path / "sitecustomize.py").write_text(STAND_IN)
    known = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    notes = tmp_path / "notes"
    stand_in = {"PYTHONPATH": known, "NOTES": str(notes), "TORCH_CUDA": cuda, "DRIVER": driver}
    done = run_program(
        [sys.executable, "-m", "switchgnn", *TRAIN], cwd=tmp_path, env={**os.environ, **stand_in}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    noted = Counter(notes.read_text().splitlines())
    # Elsewhere the workers have what their parent imported, which costs less.
    assert noted["forked before"] == before
    assert noted["forked after"] == FORKS - before
    assert noted["initialised"] == (1 + 3 if before else 1)
