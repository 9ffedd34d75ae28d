# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The steps of `switchgnn simulate`: plan, or read a plan, and simulate one exchange."""

from switchgnn.lab.simulator.compile import compiled_models
from switchgnn.lab.simulator.errors import SimulatorError
from switchgnn.lab.simulator.report import SimulateReport
from switchgnn.lab.simulator.request import SimulateOptions, compute_seconds
from switchgnn.lab.simulator.setup import Setup
from switchgnn.lab.simulator.simulation import SimulationRun, run_simulation
from switchgnn.lab.simulator.subject import Progress, make_subject


def simulate_job(options: SimulateOptions, tell: Progress) -> SimulateReport:
    """Plan or read a plan, simulate one exchange, and work out an epoch."""
    if options.leaf_spine is not None and options.workers is not None:
        options.leaf_spine.words(options.workers)  # refuse early, before planning
    _check_slots(options)
    _check_background(options)
    tell("compile the models")
    compiled_models()  # fail before minutes of planning
    subject = make_subject(options, tell)
    tell("simulate")
    run = run_simulation(subject.setup, options.network, leaf_spine=options.leaf_spine)
    computing = compute_seconds(
        subject.vertices,
        subject.additions + _received(run, subject.setup),
        options.features,
        options.layers,
    )
    return SimulateReport(options, subject, run, computing)


def _check_slots(options: SimulateOptions) -> None:
    if options.slot_features is not None and options.slot_features < options.features:
        raise SimulatorError(
            f"A slot of {options.slot_features} numbers does not hold a feature of "
            f"{options.features}: give a larger --slot-features, or none."
        )


def _check_background(options: SimulateOptions) -> None:
    if options.leaf_spine is not None and options.network.background_load:
        raise SimulatorError(
            "Background traffic has a model in a star only: leave out --background-load, or "
            "--topology leaf-spine."
        )


def _received(run: SimulationRun, setup: Setup) -> float:
    """Return sums that a worker adds to its own on average, and features that found no slot."""
    if setup.host_based:
        return 0.0
    # Where hosts send rows, too, no feature comes from the switch.
    features = 0 if setup.mixed else sum(run.features_down)
    return (sum(run.sums_down) + features) / (setup.fragments_of_feature * setup.workers)
