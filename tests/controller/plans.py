"""Small plans, made without a graph, and what a switch holds of them."""

from dataclasses import dataclass

import numpy as np
from typer.testing import CliRunner

from switchgnn import controller
from switchgnn.commands.controller import app
from switchgnn.controller.change import change_between, read_state
from switchgnn.controller.controls.job import Jobs
from switchgnn.controller.controls.session import Session, SessionEntry
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.p4runtime.rows import INSERT, row_update
from switchgnn.p4src import load_program, load_strawman
from switchgnn.planner import SwitchPart, build_plan, graph_from_edges, write_plan
from tests.support.speed import seconds_here

BANKS = 8


@dataclass(frozen=True)
class Manifest:
    workers: int
    program: str
    digest: str
    blocks: int
    slots_per_bank: int = 64
    slots: int = 512
    lanes: int = 32
    rows: int = 1
    pools: int = 1
    pool_slots: int = 64
    strawman: bool = False
    replicated: bool = False
    max_fan_in: int = 3

    @property
    def number(self):
        return int(self.digest[:8], 16)


def make_plan(seed=1, *, workers=3, sources=4, blocks=2, hops=2, results=5, program=None):
    """Return a plan; other seeds give other slots and another digest."""
    rng = np.random.default_rng(seed)
    block, source, hop = (
        axis.reshape(-1)
        for axis in np.meshgrid(
            np.arange(1, blocks + 1), np.arange(sources), np.arange(hops), indexing="ij"
        )
    )
    count = len(block)
    switch = SwitchPart(
        source_vertex=np.arange(sources, dtype=np.uint32),
        source_worker=(np.arange(sources) % workers).astype(np.uint16),
        entry_block=block.astype(np.uint16),
        entry_source=source.astype(np.uint32),
        entry_hop=hop.astype(np.uint16),
        entry_last=hop == hops - 1,
        entry_slot=rng.integers(0, 64, (count, BANKS)).astype(np.uint32),
        entry_expected=rng.integers(0, 3, (count, BANKS)).astype(np.uint16),
        entry_row=np.zeros((count, BANKS), dtype=np.uint8),
        entry_count=(np.arange(count) % 3 + 1).astype(np.uint16),
        result_block=(np.arange(results) % blocks + 1).astype(np.uint16),
        result_bank=(np.arange(results) % BANKS).astype(np.uint8),
        result_slot=np.arange(results).astype(np.uint32),
        result_vertex=rng.permutation(results).astype(np.uint32),
        result_worker=(np.arange(results) % workers).astype(np.uint16),
        result_expected=rng.integers(1, 9, results).astype(np.uint16),
    )
    digest = f"{seed:08x}" + "ab" * 28
    manifest = Manifest(workers, program or load_program().digest, digest, blocks)
    return controller.SwitchPlan(manifest, switch)


def write_ring(folder, program):
    """Write the plan of four vertices in a ring, held by two workers in turn; return it."""
    vertices = np.arange(4)
    graph = graph_from_edges(
        vertices, np.roll(vertices, -1), name="ring", vertices=4, directed=False
    )
    plan = build_plan(graph, workers=2, slots=8, program=program.digest, assignment=vertices % 2)
    write_plan(plan, folder)
    return plan


def same(layout, one, other):
    return change_between(layout, one, other).counts.total == 0


def observed(address, layout):
    """Return all that a switch holds, or None when it runs no program."""
    with controller.P4RuntimeClient(address, primary=False, deadline=seconds_here(3)) as client:
        return None if client.get_pipeline_cookie() is None else read_state(client, layout)


def serve_strawman(client, place=None):
    """Have a switch run the strawman's program, with plan 0xABCD of a job if a place is given."""
    strawman = load_strawman()
    client.set_pipeline(strawman, controller.program_cookie(strawman))
    if place is not None:
        layout = Layout.from_text(strawman.p4info)
        rows = Jobs(layout).encode(place), Session(layout).encode(1, SessionEntry(3, 0xABCD, 7, 0))
        client.write([row_update(INSERT, each.table, each.data[0]) for each in rows])


def install(
    plan, switches, network, job="default", *, program, new_session=False, progress=None, **settings
):
    """Bring all of some switches to one plan in one network."""
    plan = controller.SwitchPlan(*plan) if isinstance(plan, tuple) else plan
    loaded = plan if isinstance(plan, controller.SwitchPlan) else controller.load_plan(plan)
    shares = [controller.Share(loaded, network, switch) for switch in switches]
    desired = controller.DesiredStates(program, **settings)
    return controller.install_each(
        shares, desired, controller.JobRequest(job), new_session=new_session, progress=progress
    )


def run(*words):
    """Run a command line of `switchgnn controller` in this process."""
    return CliRunner().invoke(app, list(map(str, words)))
