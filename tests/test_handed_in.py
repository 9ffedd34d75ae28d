# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Time and randomness are handed to whatever an exchange runs through, so a run can be repeated.

Nothing asks the system for them, and nobody sleeps, behind the back of who has called.
"""

from pathlib import Path

import pytest

from tests.support.system_calls import system_calls

ROOT = Path(__file__).parent.parent
FOLDERS = ("host", "controller", "switchgnn/virtual")
# Files that ask the system, and what of; no exchange of several workers in one process needs them.
ALLOWED = {
    "host/worker.py": {"time"},  # a process of its own reports how long it took
    # A thread of its own tells how long a round was under way, and answers the others when its
    # caller has been busy with something else for long.
    "host/direct/stream.py": {"threading", "time"},
    "host/innetwork/endpoint.py": {"secrets"},  # for who is not given one
    "host/wire/batches.py": {"select", "time"},  # waits for frames of a socket
    # A limited link waits for its turn on the line.
    "host/wire/link.py": {"time", "select"},
    "host/wire/recording.py": {"time"},  # a file for people says when a frame has passed
}


def asked(name):
    return {found.partition(".")[0] for _, found in system_calls(ROOT / name)}


def files():
    return sorted(
        file.relative_to(ROOT).as_posix()
        for folder in FOLDERS
        for file in (ROOT / folder).rglob("*.py")
    )


def test_nobody_asks_the_system():
    found = {name: system_calls(ROOT / name) for name in files() if name not in ALLOWED}
    assert {name: calls for name, calls in found.items() if calls} == {}


def test_no_permission_is_left_over():
    assert {name: asked(name) for name in ALLOWED} == ALLOWED


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import time", "time"),
        ("import random\nrandom.random()", "random.random"),
        ("import random\nrandom.Random()", "random.Random()"),
        ("from random import Random\nRandom()", "random.Random()"),
        ("from random import choice", "random.choice"),
        ("import numpy as np\nnp.random.rand(3)", "numpy.random.rand"),
        ("import numpy as np\nnp.random.default_rng()", "numpy.random.default_rng()"),
        ("from os import urandom", "os.urandom"),
        ("import os\nos.getpid()", "os.getpid"),
        ("def wait():\n    from time import sleep", "time.sleep"),
        ("import threading\nthreading.Timer(1, print)", "threading.Timer"),
        ("hash('name')", "hash"),
    ],
)
def test_who_asks_is_found(tmp_path, text, name):
    file = tmp_path / "asks.py"
    file.write_text(text)
    assert name in {found for _, found in system_calls(file)}


@pytest.mark.parametrize(
    "text",
    [
        "import random\nrandom.Random(7).random()",
        "import numpy as np\nnp.random.default_rng([1, 2]).integers(3)",
        "def now(time):\n    return time.now()",
    ],
)
def test_what_is_seeded_or_handed_in_is_not(tmp_path, text):
    file = tmp_path / "seeded.py"
    file.write_text(text)
    assert system_calls(file) == []
