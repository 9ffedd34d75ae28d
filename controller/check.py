# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Check that a plan fits a P4 program and a network, before anything is sent."""

import numpy as np

from switchgnn.base.network import Network
from switchgnn.controller.controls.access import LAST_TAGS_REGISTER
from switchgnn.controller.controls.banks import Banks, Pool, has_pool
from switchgnn.controller.controls.fanout import Fanout
from switchgnn.controller.controls.loop import FIRST_LOOP_PORT
from switchgnn.controller.controls.session import Session
from switchgnn.controller.errors import PlanRefusedError
from switchgnn.controller.memory import memory_of
from switchgnn.controller.p4runtime.layout import Array, Layout
from switchgnn.controller.plan import SwitchPlan
from switchgnn.p4src import Program


def check_plan(plan: SwitchPlan, program: Program, layout: Layout, network: Network) -> None:
    """Refuse a plan for another program, or too large for this one or for the network."""
    if plan.manifest.strawman != has_pool(layout):
        kinds = ("a plan with a slot for each destination", "the strawman's plan")
        raise PlanRefusedError(
            f"This is {kinds[plan.manifest.strawman]}, but the P4 program is for "
            f"{kinds[has_pool(layout)]}: plan again, or install it with its own program."
        )
    if plan.manifest.program != program.digest:
        raise PlanRefusedError(
            f"The plan is for another P4 program ({_short(plan.manifest.program)}; this one is "
            f"{_short(program.digest)}): make the plan again."
        )
    _check_workers(plan, layout, network)
    _check_network(network)
    _check_slots(plan, layout)
    _check_sources(plan, layout.registers.get(LAST_TAGS_REGISTER))
    for table in memory_of(plan, layout, network).tables:
        if not table.fits:
            raise PlanRefusedError(
                f"The plan has {table.number:,} entries for table {table.name}, which holds "
                f"{table.room:,}: make a plan with fewer, or compile the P4 program with a larger "
                "table."
            )


def _short(digest: str) -> str:
    return digest[:12]


def _check_workers(plan: SwitchPlan, layout: Layout, network: Network) -> None:
    workers, ports = plan.manifest.workers, len(network.neighbours)
    if plan.neighbours > ports:
        raise PlanRefusedError(
            f"The plan has {plan.neighbours} workers, but the network has {ports} ports: plan for "
            "fewer workers, or connect more."
        )
    room = Session(layout).max_workers
    if workers > room:
        raise PlanRefusedError(
            f"The plan has {workers} workers; the P4 program knows at most {room}: plan for fewer."
        )


def _check_network(network: Network) -> None:
    ports = [each.port for each in network.neighbours]
    if len(set(ports)) < len(ports):
        raise PlanRefusedError("Two workers of the network are on the same port of the switch.")
    if any(not 0 < port < FIRST_LOOP_PORT for port in ports):
        raise PlanRefusedError(
            f"A worker's port must be from 1 to {FIRST_LOOP_PORT - 1}; the network has "
            f"{min(ports)} to {max(ports)}."
        )


def _check_slots(plan: SwitchPlan, layout: Layout) -> None:
    banks = Banks(layout)
    planned = plan.switch.entry_slot.shape[1]
    if planned != banks.banks or planned != Fanout(layout).banks:
        raise PlanRefusedError(
            f"The plan uses {planned} banks, the P4 program has {banks.banks}: make the plan again."
        )
    used = np.where(plan.switch.entry_expected > 0, plan.switch.entry_slot, 0)
    highest = max(int(used.max(initial=0)), int(plan.switch.result_slot.max(initial=0)))
    needed = plan.manifest.slots_per_bank
    if has_pool(layout):
        _check_destinations(highest + 1, Pool(layout).destinations_per_bank)
    else:
        needed = max(needed, highest + 1)
    if needed > banks.slots_per_bank:
        raise PlanRefusedError(
            f"The plan needs {needed:,} slots in each bank, the P4 program has "
            f"{banks.slots_per_bank:,}: plan for less memory, or compile the program with more."
        )


def _check_destinations(needed: int, room: int) -> None:
    if needed > room:
        raise PlanRefusedError(
            f"The plan has {needed:,} destinations in one bank, the P4 program tells {room:,} "
            "apart: partition the graph with a smaller boundary, or compile the program with more."
        )


def _check_sources(plan: SwitchPlan, last_tags: Array | None) -> None:
    sources = len(plan.switch.source_vertex)
    if last_tags is not None and sources > last_tags.size:
        raise PlanRefusedError(
            f"The plan has {sources:,} sources, the P4 program remembers {last_tags.size:,}: "
            "partition the graph with a smaller boundary, send without partial sums, or compile "
            "the program with more."
        )
