# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the runs of a soak at random, and writes the command that repeats a run."""

import random

from switchgnn.commands.run.job import RunOptions
from switchgnn.controller.controls.passage import DEFAULT_ECN_THRESHOLD
from switchgnn.host.pace import Pace
from switchgnn.host.wire.faults import DIRECTIONS
from switchgnn.planner.chosen import Asked
from switchgnn.planner.partition.leaf_spine import LeafSpine, even_leaf_spine
from switchgnn.topologies import Backend, Choice, cable_name

_WORKERS = (2, 5)
_ROUNDS = (1, 3)
_SLOTS = (8, 16, 64, 256, 1024)
_SENDS = ("multicast", "cover")
_WIDTHS = (1, 31, 32, 33, 64, 100)
_RATES = {"loss": 0.10, "duplicate": 0.05, "reorder": 0.05, "corrupt": 0.01}
# A direction sometimes lacks a kind of fault: some mistakes only show without it.
_NO_FAULT = 0.25
_BAD_LINK = 0.25
_BAD_LINK_LOSS = 0.2


def draw_run(
    seed: int,
    number: int,
    choice: Choice,
    leaves_and_spines: tuple[int, int] | None = None,
    backend: Backend | None = None,
) -> RunOptions:
    """Return one run of a soak; the same seed and number give the same run.

    Args:
        seed: the seed of the soak.
        number: the number of the run, from 0.
        choice: the switch and the fabric.
        leaves_and_spines: their numbers, each leaf with at least one worker; None: a star.
        backend: what embedded switches run the program as; None: what the environment says.

    Returns:
        The run.
    """
    source = random.Random(f"{seed}/{number}")  # noqa: S311
    least = max(_WORKERS[0], leaves_and_spines[0] if leaves_and_spines else 0)
    workers = source.randint(least, least + _WORKERS[1] - _WORKERS[0])
    leaf_spine = even_leaf_spine(workers, *leaves_and_spines) if leaves_and_spines else None
    return RunOptions(
        graph=_graph(source),
        workers=workers,
        features=source.choice((source.choice(_WIDTHS), source.randint(1, 128))),
        rounds=source.randint(*_ROUNDS),
        slots=source.choice(_SLOTS),
        target=choice.target.value,
        fabric=choice.fabric.value,
        bandwidth=None,
        seed=source.randrange(2**16),
        grpc_port=0,
        ecn_threshold=DEFAULT_ECN_THRESHOLD,
        pace=Pace(),
        faults=_faults(source, workers, leaf_spine),
        asked=Asked(send=source.choice(_SENDS)),
        leaf_spine=leaf_spine,
        backend=backend,
    )


def summary_of(run: RunOptions) -> str:
    """Return one line for progress messages."""
    width = "its own" if run.features is None else run.features
    return (
        f"{run.graph}, {run.workers} workers{_where(run)}, {run.slots} slots, {run.asked.send}, "
        f"{run.rounds} round{'s' if run.rounds != 1 else ''} of {width} features"
    )


def _where(run: RunOptions) -> str:
    if run.leaf_spine is None:
        return ""
    return f" on {run.leaf_spine.leaves} leaves and {run.leaf_spine.spines} spines"


def command_of(run: RunOptions) -> list[str]:
    """Return the command that repeats a drawn run; nothing is left to a default."""
    values = {
        "graph": run.graph,
        "workers": run.workers,
        "topology": "leaf-spine" if run.leaf_spine else None,
        "leaves": run.leaf_spine.leaves if run.leaf_spine else None,
        "spines": run.leaf_spine.spines if run.leaf_spine else None,
        "features": run.features,
        "rounds": run.rounds,
        "slots": run.slots,
        "send": run.asked.send,
        "target": run.target,
        "fabric": run.fabric,
        "backend": run.backend.value if run.backend else None,
        "window": run.pace.window,
        "patience": run.pace.patience,
        "ecn-threshold": run.ecn_threshold,
        "seed": run.seed,
        "faults": run.faults,
    }
    given = {name: value for name, value in values.items() if value is not None}
    words = (word for name, value in given.items() for word in (f"--{name}", str(value)))
    return ["switchgnn", "run", *words]


def _graph(source: random.Random) -> str:
    vertices = source.randint(8, 300)
    edges = source.randint(vertices // 2, min(vertices * (vertices - 1) // 2, 6 * vertices))
    made_up = f"random:{vertices}:{edges}:{source.randrange(2**16)}"
    return source.choice(("karate", "digits", made_up, made_up))


def _faults(source: random.Random, workers: int, leaf_spine: LeafSpine | None) -> str:
    words = []
    for direction in DIRECTIONS:
        for kind, most in _RATES.items():
            if source.random() >= _NO_FAULT:
                words.append(f"{direction}.{kind}={source.uniform(0, most):.4f}")
    if source.random() < _BAD_LINK:
        worker, direction = source.randrange(workers), source.choice(DIRECTIONS)
        words.append(f"w{worker}.{direction}.loss={source.uniform(0.1, _BAD_LINK_LOSS):.4f}")
    if leaf_spine and source.random() < _BAD_LINK:
        cable = cable_name(source.randrange(leaf_spine.leaves), source.randrange(leaf_spine.spines))
        loss = source.uniform(0.1, _BAD_LINK_LOSS)
        words.append(f"{cable}.{source.choice(DIRECTIONS)}.loss={loss:.4f}")
    words.append(f"seed={source.randrange(2**16)}")
    return ",".join(words)
