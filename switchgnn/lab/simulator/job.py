"""The steps of `switchgnn simulate`: make or read a plan, simulate one exchange, report."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from switchgnn.lab.simulator import simulation
from switchgnn.lab.simulator.request import CDFGNN, SimulateOptions, SimulatorError
from switchgnn.lab.simulator.setup import Setup, overlapped_seconds
from switchgnn.lab.simulator.subject import Progress, SimulatedSystem, make_subject
from switchgnn.profiles import UNLIMITED

_FLOAT_BYTES = 4
# Forward, and backward for the weights and for the layer below.
_PRODUCTS = 3
_SUMS = 2
# NVIDIA GeForce RTX 3090, the paper's: 35.6 TFLOPS and 936 GB/s (NVIDIA GA102 whitepaper). That
# kernels reach half of either is an assumption.
_OPERATIONS_PER_SECOND, _BYTES_PER_SECOND, _SHARE = 35.6e12, 936e9, 0.5
_BITS = 8
_MEGA = 1e6
# Reported in another form, or not at all.
_NOT_TOLD = (
    *("series", "trace", "finished", "inside", "background"),
    *("feature_bytes_down", "sum_bytes_down"),
)


def compute_seconds(vertices: int, additions: float, features: int, layers: int) -> float:
    """Return the seconds of a worker's epoch, in which all layers have the same width.

    A layer multiplies the features of the worker's vertices with a square matrix, limited by the
    card's operations, and adds up rows of neighbours, limited by its memory: `additions` is the
    number of rows, one for each edge or sum from the switch.
    """
    products = _PRODUCTS * 2 * vertices * features**2 / _OPERATIONS_PER_SECOND
    sums = _SUMS * additions * features * _FLOAT_BYTES / _BYTES_PER_SECOND
    return layers * (products + sums) / _SHARE


@dataclass(frozen=True, eq=False)
class SimulateReport:
    """An epoch: computing, and exchanges that each take as long as the simulated ones.

    Each layer has a forward exchange, and each but the first, whose gradients nobody needs, a
    backward one.
    """

    options: SimulateOptions  # what was asked for
    subject: SimulatedSystem  # what was simulated
    run: simulation.SimulationRun  # one forward exchange, of one layer
    backward: simulation.SimulationRun  # one backward exchange; `run` if they are equal
    compute_seconds: float  # of an epoch, see `compute_seconds`

    @property
    def communication_seconds(self) -> float:
        """Return the seconds of an epoch that workers spend in exchanges."""
        layers = self.options.layers
        return layers * self.run.seconds + (layers - 1) * self.backward.seconds

    @property
    def overlapped_seconds(self) -> float:
        """Return the seconds that bins save in an epoch by computing while they send."""
        communication = self.communication_seconds
        return overlapped_seconds(self.compute_seconds, communication, self.subject.bins)

    @property
    def epoch_seconds(self) -> float:
        """Return the seconds of communication and computing, minus their overlap."""
        return self.communication_seconds + self.compute_seconds - self.overlapped_seconds

    @property
    def bytes(self) -> int:
        """Return the bytes of one exchange on all links, both ways."""
        inside = self.run.inside
        return self.host_link_bytes + (inside.bytes if inside else 0)

    @property
    def host_link_bytes(self) -> int:
        """Return the same without links between switches."""
        return sum(self.run.bytes_up) + sum(self.run.bytes_down)

    @property
    def busiest_link_seconds(self) -> float:
        """Return the shortest possible exchange: the fullest link's bytes over its rate."""
        inside = self.run.inside
        between = (*inside.bytes_up, *inside.bytes_down) if inside else ()
        most = max(*self.run.bytes_up, *self.run.bytes_down, *between)
        return most * _BITS / (self.options.network.bandwidth * _MEGA)

    @property
    def aggregation_bits_per_second(self) -> float:
        """Return the bits of sums sent to workers, over the duration of an exchange."""
        return self._bits_per_second(sum(self.run.sum_bytes_down))

    @property
    def total_bits_per_second(self) -> float:
        """Return the same, including features that the switch forwards unchanged."""
        features = sum(self.run.feature_bytes_down)
        return self._bits_per_second(sum(self.run.sum_bytes_down) + features)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data; docs/simulator-output.md describes it."""
        run, subject, options = self.run, self.subject, self.options
        return {
            "system": subject.system,
            "graph": subject.graph,
            "plan": subject.digest,
            "workers": subject.setup.workers,
            "memory_bytes": subject.slots * options.bytes_of_slot(subject.lanes),
            "slots": subject.slots,
            "slot_features": options.slot_features,
            "blocks": subject.setup.blocks,
            "left": subject.left,
            "rows_between_hosts": subject.rows_between_hosts,
            "layers": options.layers,
            "features": options.features,
            "mtu": options.framing.told,
            "phases": options.phases,
            "sampling": options.sampling,
            "lanes": subject.lanes,
            "pools": subject.setup.pools,
            "rows": subject.setup.rows,
            "predicted_seconds": subject.predicted_seconds,
            "chosen": subject.chosen,
            "seed": options.seed,
            "network": asdict(options.network),
            **self._leaf_spine(),
            **self._switch(),
            "epoch_seconds": self.epoch_seconds,
            "communication_seconds": self.communication_seconds,
            "compute_seconds": self.compute_seconds,
            "overlapped_seconds": self.overlapped_seconds,
            "bins": subject.bins,
            "exchange_seconds": run.seconds,
            "backward_seconds": self.backward.seconds,
            "busiest_link_seconds": self.busiest_link_seconds,
            "bytes": self.bytes,
            "aggregation_bits_per_second": self.aggregation_bits_per_second,
            "total_bits_per_second": self.total_bits_per_second,
            **_members(run, *_NOT_TOLD),
            "events_per_second": run.events / run.wall_seconds,
            "background": run.background and _members(run.background, "trace"),
            "series": vars(run.series),
        }

    def _leaf_spine(self) -> dict[str, Any]:
        network, inside = self.options.leaf_spine, self.run.inside
        if network is None or inside is None:
            return {}
        return {
            **asdict(network),
            "host_link_bytes": self.host_link_bytes,
            "leaf_spine_bytes": inside.bytes,
            "partial_sums": sum(inside.sums_up),
            "leaf_spine_links": _members(inside),
        }

    def _switch(self) -> dict[str, Any]:
        switch, memory = self.options.switch, self.subject.memory
        if switch == UNLIMITED and memory is None:
            return {}
        told = {"switch": switch.name, "banks": switch.banks}
        return told if memory is None else {**told, **memory.to_dict()}

    def _bits_per_second(self, frame_bytes: int) -> float:
        # A single worker exchanges nothing, in no time.
        seconds = self.run.seconds
        return frame_bytes * _BITS / seconds if seconds else 0.0


def _members(record: object, *without: str) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in without}


def simulate_job(
    options: SimulateOptions,
    tell: Progress,
    make: Callable[[SimulateOptions, Progress], SimulatedSystem] = make_subject,
) -> SimulateReport:
    """Make or read a plan, simulate its exchanges, and compute an epoch from them."""
    if options.leaf_spine is not None and options.workers is not None:
        options.leaf_spine.attach(options.workers)  # refuse early, before planning
    _check(options)
    tell("compile the models")
    simulation.compiled_models()  # fail before minutes of planning
    subject = make(options, tell)
    if subject.in_rounds and options.network.background_load:
        raise SimulatorError(f"Two rounds of {CDFGNN} have no background: leave its load out.")
    tell("simulate")
    run = simulation.run_simulation(subject.setup, options.network, leaf_spine=options.leaf_spine)
    backward = run
    if subject.backward is not None:
        backward = simulation.run_simulation(
            subject.backward, options.network, leaf_spine=options.leaf_spine
        )
    if subject.in_rounds:
        run = backward = simulation.one_after_another(run, backward)
    computing = compute_seconds(
        subject.vertices,
        subject.additions + _received(run, subject.setup),
        options.features,
        options.layers,
    )
    return SimulateReport(options, subject, run, backward, computing)


def _check(options: SimulateOptions) -> None:
    if options.slot_features is not None and options.slot_features < options.features:
        raise SimulatorError(
            f"A slot of {options.slot_features} numbers does not hold a feature of "
            f"{options.features}: give a larger --slot-features, or none."
        )
    if options.leaf_spine is not None and options.network.background_load:
        raise SimulatorError(
            "Background traffic has a model in a star only: leave out --background-load, or "
            "--topology leaf-spine."
        )


def _received(run: simulation.SimulationRun, setup: Setup) -> float:
    if setup.host_based:
        return 0.0
    # Where hosts send rows, too, no feature comes from the switch.
    features = 0 if setup.mixed else sum(run.features_down)
    sums = run.sums if setup.rows > 1 else sum(run.sums_down)
    return (sums + features) / (setup.fragments_of_feature * setup.workers)
