"""A worker's side: packets, links, fixed point, and the exchange over the switch."""

from switchgnn.base.network import Station
from switchgnn.host.base.errors import FeatureError, HostError, LinkError
from switchgnn.host.base.pace import Pace
from switchgnn.host.innetwork.errors import InNetworkError
from switchgnn.host.innetwork.exchange import InNetworkExchange
from switchgnn.host.innetwork.fixed_point import FixedPoint
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.link import UdpLink, open_link

__all__ = [
    "Addresses",
    "FeatureError",
    "FixedPoint",
    "HostError",
    "InNetworkError",
    "InNetworkExchange",
    "LinkError",
    "Pace",
    "Station",
    "UdpLink",
    "open_link",
]
