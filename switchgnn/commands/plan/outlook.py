# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Whether the switch pays: predicted seconds of a plan's exchanges, and of hosts alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from switchgnn.base.options import NETWORK
from switchgnn.commands.shared.topology import known_mtu
from switchgnn.host.direct.framing import USUAL_MTU, Framing
from switchgnn.planner.costs.forecast import (
    HOST,
    HOST_PARTIAL,
    WAYS,
    Rows,
    StarForecast,
    host_rows,
    share_served,
    verdict,
    way_of,
)
from switchgnn.planner.costs.host_seconds import packed_frames
from switchgnn.planner.costs.report import Frames
from switchgnn.planner.costs.seconds import Network
from switchgnn.planner.direction import find_directions
from switchgnn.planner.graphs.boundary import BoundaryEdges
from switchgnn.planner.plan.plan import Plan
from switchgnn.profiles import UNLIMITED, SwitchProfile
from switchgnn.profiles.network import network_of

_DEFAULT = Network()
_MEGA, _GIGA, _MICRO, _MILLI = 1e6, 1e9, 1e-6, 1e-3


@dataclass(frozen=True)
class LinkOptions:
    """The links that exchanges are predicted on."""

    bandwidth: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            metavar="MBIT/S",
            rich_help_panel=NETWORK,
            show_default=f"of the switch's ports, or {_DEFAULT.bits_per_second / _MEGA:g}",
            help="Of each link, for the predicted time.",
        ),
    ] = None
    delay: Annotated[
        float,
        typer.Option(
            min=0.0, metavar="NUMBER", rich_help_panel=NETWORK, help="Microseconds on each link."
        ),
    ] = _DEFAULT.delay / _MICRO
    mtu: Annotated[
        str,
        typer.Option(
            metavar="BYTES",
            rich_help_panel=NETWORK,
            callback=known_mtu,
            help="The largest IP packet between hosts alone, into which they pack rows.",
        ),
    ] = str(USUAL_MTU)

    def network(self, profile: SwitchProfile | None, loop: float | None) -> Network:
        """Return what is predicted on.

        Args:
            profile: of the switch; None: one without limits.
            loop: its passes per second, or None.
        """
        return network_of(
            UNLIMITED if profile is None else profile,
            bits_per_second=None if self.bandwidth is None else self.bandwidth * _MEGA,
            delay=self.delay * _MICRO,
            loop=loop,
            mtu=Framing.parse(self.mtu).packet_bytes,
        )


@dataclass(frozen=True)
class WayLoad:
    """Bytes of one exchange in each direction of the plan, headers included.

    Attributes:
        up: of all workers, on their links.
        down: the same the other way.
        busiest: of the fullest link, one way.
    """

    up: int
    down: int
    busiest: int


@dataclass(frozen=True)
class Outlook:
    """What exchanges take with a plan, and between hosts alone.

    Attributes:
        plan: the way of the plan: `switch`, `mixed`, or a way of hosts alone where it leaves all.
        network: what is predicted on.
        loads: bytes by way.
        seconds: predicted by way; empty over leaves and spines.
        chosen: the way with the least; None without a prediction.
        why: one sentence for the user.
    """

    plan: str
    network: Network
    loads: Mapping[str, WayLoad]
    seconds: Mapping[str, float]
    chosen: str | None
    why: str


def forecast_of(network: Network, directions: str, width: int) -> StarForecast:
    """Return what predicts one exchange in each direction.

    Args:
        network: links and switch.
        directions: a key of DIRECTIONS.
        width: numbers of a feature.

    Returns:
        The forecast.
    """
    return StarForecast(network, {each: {width: 1.0} for each in find_directions(directions)})


def outlook_of(
    plan: Plan,
    boundary: BoundaryEdges,
    forecast: StarForecast,
    frames: Frames,
    known: Mapping[str, float] | None,
    *,
    star: bool,
) -> Outlook:
    """Compare a plan with hosts alone, which pack rows into frames.

    Args:
        plan: the plan.
        boundary: the boundary edges of the forward direction.
        forecast: predicts exchanges of one width.
        frames: what a packet of the switch weighs.
        known: the seconds that were predicted when it was made, by way; or None.
        star: whether there is one switch; exchanges over several are not predicted.

    Returns:
        Bytes and seconds of each way.
    """
    workers, directions = plan.manifest.workers, forecast.directions
    rows = {
        way: host_rows(boundary, workers, directions, partial=way == HOST_PARTIAL)
        for way in (HOST_PARTIAL, HOST)
    }
    left = host_rows(
        boundary, workers, directions, partial=True, left={it: plan.left(it) for it in directions}
    )
    own = way_of(plan, directions)
    loads = {way: _between_hosts(each, forecast) for way, each in rows.items()}
    if own not in loads:
        loads = {own: _of_plan(plan, left, forecast, frames), **loads}
    if not star:
        why = "Exchanges over leaves and spines are not predicted."
        return Outlook(own, forecast.network, loads, {}, None, why)
    seconds = dict(known or {})
    if known is None:
        seconds = {way: forecast.of_hosts(each) for way, each in rows.items()}
        if own not in seconds:
            seconds[own] = forecast.of_plan(plan, left)
    chosen = min((way for way in WAYS if way in seconds), key=seconds.__getitem__)
    kept = share_served(plan, boundary, directions)
    both = len(directions) > 1
    why = verdict(own, seconds, kept, forecast.network.mtu, both=both)
    ordered = {way: seconds[way] for way in WAYS if way in seconds}
    return Outlook(own, forecast.network, loads, ordered, chosen, why)


def _between_hosts(rows: Rows, forecast: StarForecast) -> WayLoad:
    return _load(*_packed(rows, forecast))


def _of_plan(plan: Plan, left: Rows, forecast: StarForecast, frames: Frames) -> WayLoad:
    up, down = _packed(left, forecast)
    for direction in forecast.directions:
        said = plan.manifest.direction(direction).prediction
        up = up + np.array(said.packets_up) * frames.feature_bytes
        down = down + np.array(said.packets_down) * frames.feature_bytes
    return _load(up, down)


def _packed(rows: Rows, forecast: StarForecast) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the bytes of hosts' frames that each worker sends, and receives: int64[W] each."""
    sizes = sum(
        packed_frames(rows[direction], width, forecast.network.mtu)[1]
        for direction, widths in forecast.exchanges.items()
        for width in widths
    )
    sizes = np.asarray(sizes)
    return sizes.sum(axis=1), sizes.sum(axis=0)


def _load(up: NDArray[np.int64], down: NDArray[np.int64]) -> WayLoad:
    return WayLoad(int(up.sum()), int(down.sum()), int(max(up.max(), down.max())))
