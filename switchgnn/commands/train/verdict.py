# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The last lines of `switchgnn train`: the switch beside the best paths between hosts, and why."""

from collections.abc import Sequence
from typing import NamedTuple

from switchgnn.commands.train.report import TrainReport
from switchgnn.host.registry import SWITCH, transport_kind

# A link that is busy for this share of an epoch, or more, is what limits it.
_LIMITS = 0.5


class BusiestLink(NamedTuple):
    """The direction of a link that needs the most time in an epoch.

    Attributes:
        worker: whose link it is.
        way: ``up`` or ``down``.
        size: its bytes per epoch.
    """

    worker: int
    way: str
    size: float


def busiest_link(report: TrainReport) -> BusiestLink:
    """Return the direction of a worker's link with the most bytes of exchanges per epoch."""
    links = (
        BusiestLink(worker, way, traffic[f"bytes_{way}"])
        for worker, traffic in enumerate(report.epoch_traffic)
        for way in ("up", "down")
    )
    return max(links, key=lambda link: link.size)


def verdict_lines(reports: Sequence[TrainReport]) -> list[str]:
    """Compare the switch with the fastest and the leanest path between hosts.

    Args:
        reports: of all transports.

    Returns:
        A line each for time, bytes and the reason; none without a switch and a path to compare.
    """
    ours = next((each for each in reports if each.transport == SWITCH.name), None)
    hosts = [each for each in reports if transport_kind(each.transport).between_hosts]
    if ours is None or not hosts or not all(each.epoch_bytes for each in (ours, *hosts)):
        return []
    fastest = min(hosts, key=lambda report: report.epoch_seconds)
    leanest = min(hosts, key=lambda report: report.epoch_bytes)
    return [
        f"Time of an epoch: switch {_ms(ours.epoch_seconds)}; {fastest.transport}, the fastest "
        f"path between hosts, {_ms(fastest.epoch_seconds)}. "
        + _compared(ours.epoch_seconds, fastest.epoch_seconds, "time"),
        f"Bytes of an epoch: switch {_mb(ours.epoch_bytes)}; {leanest.transport}, the leanest path "
        f"between hosts, {_mb(leanest.epoch_bytes)}. "
        + _compared(ours.epoch_bytes, leanest.epoch_bytes, "bytes"),
        " ".join(_why(report) for report in (ours, fastest)),
    ]


def _compared(ours: float, theirs: float, of: str) -> str:
    if f"{ours / theirs:.2f}" == "1.00":
        return f"Both take the same {of}."
    verb = "wins" if ours < theirs else "loses"
    return f"The switch {verb}: it takes {ours / theirs:.2f} times the {of}."


def _why(report: TrainReport) -> str:
    """Say how much of an epoch the busiest link needs, or what there is without a limit."""
    if report.bandwidth is None:
        return (
            f"Over {report.transport}, without a limit of links, an epoch takes "
            f"{report.epoch_frames:,.0f} frames of "
            f"{report.epoch_bytes / report.epoch_frames:,.0f} bytes, and workers wait "
            f"{_ms(report.split['waiting'])} for exchanges."
        )
    link = busiest_link(report)
    needed = link.size * 8 / (report.bandwidth * 1e6)
    share = needed / report.epoch_seconds
    limit = "the network is the limit" if share >= _LIMITS else "the network is not the limit"
    return (
        f"The busiest link of {report.transport} (worker {link.worker}, {link.way}) needs "
        f"{_ms(needed)} of an epoch for {_mb(link.size)} at {report.bandwidth:g} Mbit/s, "
        f"{share:.0%}: {limit}."
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms"


def _mb(number: float) -> str:
    return f"{number / 1e6:,.2f} MB"
