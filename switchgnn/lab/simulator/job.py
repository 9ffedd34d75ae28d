# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The steps of `switchgnn simulate`: plan, or read a plan, and simulate one exchange."""

from dataclasses import dataclass

from switchgnn.lab.simulator.compile import compiled_models
from switchgnn.lab.simulator.errors import SimulatorError
from switchgnn.lab.simulator.report import SimulateReport
from switchgnn.lab.simulator.request import SimulateOptions, compute_seconds
from switchgnn.lab.simulator.setup import Setup
from switchgnn.lab.simulator.simulation import SimulationRun, run_simulation
from switchgnn.lab.simulator.subject import Progress, make_subject
from switchgnn.planner.partition.leaf_spine import LeafSpine, even_leaf_spine


def simulate_job(options: SimulateOptions, tell: Progress) -> SimulateReport:
    """Plan or read a plan, simulate one exchange, and work out an epoch.

    Args:
        options: what to simulate.
        tell: called with a few words at the start of each step.

    Returns:
        What was simulated, and what an epoch takes.

    Raises:
        SwitchGNNError: with a sentence for the user.
    """
    if options.leaf_spine is not None and options.workers is not None:
        options.leaf_spine.words(options.workers)  # or say what cannot be, before planning
    _check_slots(options)
    _check_background(options)
    tell("compile the models")
    compiled_models()  # or say what is missing, before minutes of planning
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


# Which switches complete the sums whose contributions come from several leaves.
SPINE, LEAF = "spine", "leaf"
COMPLETIONS = (SPINE, LEAF)


@dataclass(frozen=True)
class LeafSpineOptions:
    """Each leaf has a link to each spine, and an equal share of the workers.

    Attributes:
        leaves: switches that workers have their links to, and that add.
        spines: switches between the leaves.
        completion: `spine`: spines complete sums that cross them, as the P4 program has it. `leaf`:
            the leaf of the destination does, a variant that the P4 program does not implement.
    """

    leaves: int = 8
    spines: int = 8
    completion: str = SPINE

    def words(self, workers: int) -> dict[str, object]:
        """Return what the models are told, by name.

        Raises:
            SimulatorError: a leaf would have no worker, there is no spine, or there is no such
                completion.
        """
        self._check(workers)
        return {"leaves": self.leaves, "spines": self.spines, "completion": self.completion}

    def attach(self, workers: int) -> LeafSpine:
        """Return which worker is attached to which leaf, in the planner's terms.

        Raises:
            SimulatorError: as `words`.
        """
        self._check(workers)
        return even_leaf_spine(workers, self.leaves, self.spines)

    def _check(self, workers: int) -> None:
        if self.leaves < 1 or self.spines < 1:
            raise SimulatorError(
                f"A leaf-spine needs a leaf and a spine, but has {self.leaves} and {self.spines}."
            )
        if self.leaves > workers:
            raise SimulatorError(
                f"Every leaf needs a worker, but there are {self.leaves} leaves and {workers} "
                "workers: give fewer --leaves."
            )
        if self.completion not in COMPLETIONS:
            raise SimulatorError(
                f"No completion {self.completion!r}; known: {', '.join(COMPLETIONS)}."
            )


@dataclass(frozen=True)
class InsideLinks:
    """What went over the links between leaves and spines: a number per link, leaf by leaf.

    Attributes:
        frames_up, bytes_up, frames_down, bytes_down: from leaves to spines, and back.
        sums_up: partial sums that leaves sent.
        features_up: copies between hosts, or features that found no slot at their leaf.
    """

    frames_up: tuple[int, ...]
    bytes_up: tuple[int, ...]
    frames_down: tuple[int, ...]
    bytes_down: tuple[int, ...]
    sums_up: tuple[int, ...]
    features_up: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Bytes on all of them, both ways."""
        return sum(self.bytes_up) + sum(self.bytes_down)
