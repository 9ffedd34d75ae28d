# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Simulations within what a switch has."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from switchgnn.lab.simulator.errors import SimulatorError
from switchgnn.lab.simulator.request import LEAF, SimulateOptions
from switchgnn.lab.simulator.setup import ETHERNET_MTU
from switchgnn.p4src import load_program, load_strawman
from switchgnn.planner.costs.seconds import NetworkModel
from switchgnn.planner.lanes import BANK_LANES, banks_of_slot, frame_bytes
from switchgnn.planner.plan.leaf_spine import split_for_leaf_spine
from switchgnn.planner.plan.plan import Plan
from switchgnn.planner.presets import PlanContext, slot_bytes
from switchgnn.profiles import UNLIMITED, PlanMemory, plan_memory
from switchgnn.profiles.profile import most_attached

_BITS, _MEGA, _MICRO = 8, 1e6, 1e-6


def planned_for(options: SimulateOptions, workers: int, slots: int) -> PlanContext:
    """Return what a plan depends on; within a switch, rates of links and loop are a part of it."""
    lanes = options.lanes or BANK_LANES
    banks, wide = options.switch.banks, banks_of_slot(lanes)
    if wide > banks:
        raise SimulatorError(
            f"A slot of {lanes} numbers takes {wide} banks, but the switch {options.switch.name} "
            f"has {banks}: give fewer --lanes."
        )
    if options.slot_features is not None:
        # Each of them holds a whole feature, independent of its frames.
        slots *= wide
    attached = None if options.leaf_spine is None else options.leaf_spine.attach(workers)
    context = PlanContext(
        workers,
        slots,
        leaf_spine=attached,
        banks=banks,
        lanes=lanes,
        leaves_complete=options.leaf_spine is not None and options.leaf_spine.completion == LEAF,
    )
    if options.switch == UNLIMITED:
        return context
    return replace(
        context,
        link_rate=options.network.bandwidth * _MEGA / (_BITS * frame_bytes(lanes)),
        recirculation_rate=options.network.recirculation_rate,
        within=True,
    )


def predicted_on(options: SimulateOptions) -> NetworkModel:
    """Return what exchanges are predicted on: the star that is simulated, without what is lost."""
    network = options.network
    return NetworkModel(
        bits_per_second=network.bandwidth * _MEGA,
        delay=network.delay * _MICRO,
        passes_per_second=network.recirculation_rate,
        mtu=options.mtu if isinstance(options.mtu, int) else ETHERNET_MTU,
        window=network.window,
    )


def bytes_of_slot(lanes: int, slot_features: int | None) -> int:
    """Return the memory of a slot: whole banks, or a whole feature's numbers."""
    size = slot_bytes(slot_features)
    return size * banks_of_slot(lanes) if slot_features is None else size


def check_links(options: SimulateOptions, workers: int) -> None:
    """Check that the switches have ports for all links."""
    attached = None if options.leaf_spine is None else options.leaf_spine.attach(workers)
    options.switch.check_attached(most_attached(attached, workers), options.network.bandwidth)


def room_for(options: SimulateOptions) -> Callable[[Plan], bool] | None:
    """Return whether the tables of a plan fit the switch, as `build_plan` asks it."""
    if not _limited(options):
        return None
    return lambda plan: not _memory(plan, options).refusals


def check_fits(plan: Plan, options: SimulateOptions) -> PlanMemory | None:
    """Check that a plan fits the switch."""
    switch, manifest = options.switch, plan.manifest
    if not _limited(options):
        return None
    _check_banks(plan, options)
    size = bytes_of_slot(manifest.lanes, options.slot_features)
    if options.slots is None and switch.slot_bytes is not None:
        room = switch.slot_bytes // size
        if manifest.room > room:
            raise SimulatorError(
                f"The plan may use {manifest.room:,} slots, and the switch {switch.name} has "
                f"{room:,} of {size} bytes: plan with --slots {room}, or take another switch "
                "(--switch)."
            )
    memory = _memory(plan, options)
    if memory.refusals:
        raise SimulatorError(" ".join(memory.refusals))
    return memory


def _limited(options: SimulateOptions) -> bool:
    return options.switch != UNLIMITED or options.table_memory is not None


def _memory(plan: Plan, options: SimulateOptions) -> PlanMemory:
    switch, manifest = options.switch, plan.manifest
    parts = None
    if options.leaf_spine is not None and not manifest.strawman:
        attached = options.leaf_spine.attach(manifest.workers)
        parts = split_for_leaf_spine(plan, attached, banks=switch.banks)
    program = load_strawman() if manifest.strawman else load_program()
    allowed = switch.table_bytes if options.table_memory is None else options.table_memory
    return plan_memory(plan, parts, program, allowed, switch)


def _check_banks(plan: Plan, options: SimulateOptions) -> None:
    banks, used = options.switch.banks, plan.switch.entry_expected > 0
    # Bank b of the tables is part of the switch's bank b mod banks.
    together = used.reshape(len(used), -1, banks).sum(axis=1)
    most = int(np.max(together, initial=0))
    if most > 1:
        raise SimulatorError(
            f"A pass of the plan adds to {most} slots of one bank, as the switch "
            f"{options.switch.name} has {banks}, and a pass can add to one slot of each: plan with "
            f"--switch {options.switch.name}."
        )
