"""Which addresses may be connected to: the public Internet, and what a setting allows besides.

The URL of a feed or a webhook is written by a stranger. It must not lead to the machines behind the
wall: loopback, private networks, the metadata service of a cloud. Names are worth nothing here, as
whoever owns a name decides what it resolves to, and may decide otherwise a second later. So the
*address* is judged, at connect time, and the connection goes to the very address that was judged.
Here is the judgement alone, without I/O; the rooms that connect have a connect.py each.

An IPv6 address may carry an IPv4 address that a gateway will unwrap. It is judged by what it
carries:

    ::ffff:10.0.0.1      mapped     10.0.0.1
    64:ff9b::10.0.0.1    NAT64      10.0.0.1
    2002:0a00:0001::     6to4       10.0.0.1
    …:0:5efe:10.0.0.1    ISATAP     10.0.0.1

The table is our own, from IANA's registries of special addresses, since what `ipaddress` calls
global differs between versions of Python. Of IPv6 only 2000::/3 is unicast on the Internet, so
everything else is refused without being listed.

Any port may be connected to: feeds and hooks are served on odd ones, and a port number protects
nothing that its address does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_REFUSED_4 = {
    IPv4Network("0.0.0.0/8"): "this network",
    IPv4Network("10.0.0.0/8"): "private",
    IPv4Network("100.64.0.0/10"): "shared by a carrier",
    IPv4Network("127.0.0.0/8"): "loopback",
    IPv4Network("168.63.129.16/32"): "a cloud's host",
    IPv4Network("169.254.0.0/16"): "link-local",
    IPv4Network("172.16.0.0/12"): "private",
    IPv4Network("192.0.0.0/24"): "reserved for protocols",
    IPv4Network("192.0.2.0/24"): "reserved for documents",
    IPv4Network("192.88.99.0/24"): "a relay",
    IPv4Network("192.168.0.0/16"): "private",
    IPv4Network("198.18.0.0/15"): "reserved for benchmarks",
    IPv4Network("198.51.100.0/24"): "reserved for documents",
    IPv4Network("203.0.113.0/24"): "reserved for documents",
    IPv4Network("224.0.0.0/4"): "multicast",
    IPv4Network("240.0.0.0/4"): "reserved",
}
_REFUSED_6 = {
    IPv6Network("2001::/23"): "reserved for protocols",
    IPv6Network("2001:db8::/32"): "reserved for documents",
    IPv6Network("3fff::/20"): "reserved for documents",
}
_NAMED_6 = {
    IPv6Network("::1/128"): "loopback",
    IPv6Network("fc00::/7"): "private",
    IPv6Network("fe80::/10"): "link-local",
    IPv6Network("ff00::/8"): "multicast",
}
_UNICAST_6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP = {0x00005EFE, 0x02005EFE}


@dataclass(frozen=True, slots=True)
class AllowedNetworks:
    """Networks that may be connected to though they are not public.

    >>> AllowedNetworks.of("127.0.0.0/8", "::1").refusal("127.0.0.1") is None
    True
    """

    networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, *networks: str) -> AllowedNetworks:
        return cls(tuple(ip_network(each) for each in networks))

    def refusal(self, address: str) -> str | None:
        """Why this address is not connected to; nothing where it may be.

        >>> AllowedNetworks().refusal("::ffff:192.168.1.1")
        '::ffff:192.168.1.1 carries 192.168.1.1, which is private'
        """
        found = ip_address(address.partition("%")[0])
        if self._allows(found):
            return None
        carried = carried_address(found)
        if carried is None:
            reason = _special(found)
            return f"{address} is {reason}" if reason else None
        reason = None if self._allows(carried) else _special(carried)
        return f"{address} carries {carried}, which is {reason}" if reason else None

    def _allows(self, address: Address) -> bool:
        return any(address in network for network in self.networks)


PUBLIC_ONLY = AllowedNetworks()
LOOPBACK = AllowedNetworks.of("127.0.0.0/8", "::1/128")


def carried_address(address: Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for on its way through a gateway."""
    if isinstance(address, IPv4Address):
        return None
    last = IPv4Address(int(address) & 0xFFFF_FFFF)
    if address.ipv4_mapped is not None or address in _NAT64:
        return last
    if (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP:
        return last
    return address.sixtofour


def _special(address: Address) -> str | None:
    """What an address is if it is not one of the public Internet."""
    if isinstance(address, IPv4Address):
        return _first(address, _REFUSED_4.items())
    if address in _UNICAST_6:
        return _first(address, _REFUSED_6.items())
    return _first(address, _NAMED_6.items()) or "not on the public Internet"


def _first(address: Address, networks: Iterable[tuple[Network, str]]) -> str | None:
    return next((what for network, what in networks if address in network), None)
