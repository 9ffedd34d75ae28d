"""What a test needs of the machine, and in which set of tests it is."""

import itertools
import os
import shutil
import subprocess

import pytest

from switchgnn.base.native import find_compiler
from switchgnn.topologies import Backend, Target
from switchgnn.topologies.mininet_fabric import mininet_missing
from switchgnn.topologies.targets import BMV2_PROGRAM, bmv2_installed

# `make check` leaves out what runs whole programs, `make test` what is a variation.
whole = pytest.mark.whole
full = pytest.mark.full
# From util-linux; see tests/support/small_disk.py.
_PUT_A_DISK = ("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt")


def needs(program, package=None):
    mend = f" (apt-get install {package})" if package else ""
    return pytest.mark.skipif(
        shutil.which(program) is None, reason=f"{program} is not on the PATH{mend}"
    )


def disks_can_be_put():
    try:
        return not subprocess.run(_PUT_A_DISK, check=False, capture_output=True).returncode
    except FileNotFoundError:
        return False


needs_mininet = pytest.mark.skipif(bool(mininet_missing()), reason=mininet_missing() or "")
needs_bmv2 = pytest.mark.skipif(not bmv2_installed(), reason=f"{BMV2_PROGRAM} is not on the PATH")
needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="needs a C++ compiler")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="this needs root")
needs_disks = pytest.mark.skipif(
    not disks_can_be_put(), reason="this needs root, and may not mount disks of its own here"
)
needs_ping = needs("ping", "iputils-ping")

# The switches, where tests make the links themselves: BMv2's are veth pairs, which need root.
TARGETS = [
    pytest.param(Target.EMBEDDED, id="embedded"),
    pytest.param(Target.BMV2, id="bmv2", marks=[needs_bmv2, needs_root]),
]
MININET_TARGETS = [
    pytest.param(Target.EMBEDDED, id="embedded"),
    pytest.param(Target.BMV2, id="bmv2", marks=[needs_bmv2, needs_mininet]),
]
# Switch and fabric as `switchgnn run` takes them.
COMBINATIONS = [
    pytest.param(("embedded", "loopback"), id="embedded-loopback"),
    pytest.param(("embedded", "mininet"), id="embedded-mininet", marks=needs_mininet),
    pytest.param(("bmv2", "mininet"), id="bmv2-mininet", marks=[needs_mininet, needs_bmv2]),
]
MININET_COMBINATIONS = COMBINATIONS[1:]
# The embedded switch runs native code where there is a compiler. A share of the tests has it run
# Python, too: those whose parameters have one of these besides.
TARGET_ON_PYTHON = pytest.param((Target.EMBEDDED, Backend.PYTHON), id="embedded-python")
COMBINATION_ON_PYTHON = pytest.param(
    ("embedded", "loopback", "python"), id="embedded-loopback-python"
)


def on_python(*values):
    """Add the embedded switch on Python to the combinations, if a test has more parameters."""
    return _joined([COMBINATION_ON_PYTHON, *values], ())


def words_of(combination):
    names = ("--target", "--fabric", "--backend")
    return [word for pair in zip(names, combination, strict=False) for word in pair]


def covering(*axes):
    """The product of some axes; `make test` has every pair of values, test-all the rest."""
    return _product(axes, _pairs_covered([len(axis) for axis in axes]))


def some_of(keep, *axes):
    """The product of some axes; combinations that `keep` refuses are for test-all only."""
    every = itertools.product(*(range(len(axis)) for axis in axes))
    return _product(axes, {indices for indices in every if keep(*indices)})


def _product(axes, chosen):
    return [
        _joined(
            [axis[index] for axis, index in zip(axes, indices, strict=True)],
            () if indices in chosen else (full,),
        )
        for indices in itertools.product(*(range(len(axis)) for axis in axes))
    ]


def _pairs_covered(sizes):
    """A greedy set of indices in a product with every pair of values of two axes."""
    every = list(itertools.product(*map(range, sizes)))
    wanted = set().union(*map(_pairs, every))
    chosen = set()
    while wanted:
        best = max(every, key=lambda indices: len(_pairs(indices) & wanted))
        chosen.add(best)
        wanted -= _pairs(best)
    return chosen


def _pairs(indices):
    return set(itertools.combinations(enumerate(indices), 2)) or {tuple(enumerate(indices))}


def _joined(values, marks):
    kind = type(pytest.param())
    parts = [value if isinstance(value, kind) else pytest.param(value) for value in values]
    names = [part.id or _name(part.values[0]) for part in parts]
    flat = [value for part in parts for value in part.values]
    own = [mark for part in parts for mark in part.marks]
    return pytest.param(*flat, id="-".join(names), marks=[*marks, *own])


def _name(value):
    return getattr(value, "name", None) or str(value)
