"""Which network addresses may be connected to: public ones, and those that a setting allows.

The URL of a feed or a webhook comes from an untrusted user. It must not lead to machines behind the
firewall: loopback, private networks, the metadata service of a cloud. A check of the host name
protects nothing, because the owner of a name can change what it resolves to at any time. So the
*address* is checked at connect time, and the connection goes to the address that was checked. This
module is the check alone, without I/O.

An IPv6 address may carry an IPv4 address that a gateway will unwrap. Then the carried address is
checked:

    ::ffff:10.0.0.1      mapped     10.0.0.1
    64:ff9b::10.0.0.1    NAT64      10.0.0.1
    2002:0a00:0001::     6to4       10.0.0.1
    …:0:5efe:10.0.0.1    ISATAP     10.0.0.1

The table follows IANA's registries of special addresses. `ipaddress.is_global` is not used, because
it differs between versions of Python. Of IPv6 only 2000::/3 is unicast on the Internet, so
everything else is refused without being listed.

Any port is allowed: feeds and webhooks are served on unusual ports, and the address decides.
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

from headgate.model.errors import InvalidValue

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
    """Networks that may be connected to although they are not public.

    >>> AllowedNetworks.of("127.0.0.0/8", "::1").refusal("127.0.0.1") is None
    True
    """

    networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, *networks: str) -> AllowedNetworks:
        return cls(tuple(ip_network(each) for each in networks))

    def refusal(self, address: str) -> str | None:
        """Why this address is refused; None if it is allowed.

        >>> AllowedNetworks().refusal("::ffff:192.168.1.1")
        '::ffff:192.168.1.1 carries 192.168.1.1, which is private'
        """
        parsed = ip_address(address.partition("%")[0])
        if self._allows(parsed):
            return None
        carried = carried_address(parsed)
        if carried is None:
            reason = _special(parsed)
            return f"{address} is {reason}" if reason else None
        reason = None if self._allows(carried) else _special(carried)
        return f"{address} carries {carried}, which is {reason}" if reason else None

    def _allows(self, address: Address) -> bool:
        return any(address in network for network in self.networks)


PUBLIC_ONLY = AllowedNetworks()
LOOPBACK = AllowedNetworks.of("127.0.0.0/8", "::1/128")


def allowed_networks(text: str) -> AllowedNetworks:
    """Networks as settings name them: addresses with a length, and `loopback`, between commas.

    >>> allowed_networks("loopback, 10.0.0.0/8").refusal("127.0.0.1") is None
    True
    """
    names = [each.strip() for each in text.split(",") if each.strip()]
    loopback = LOOPBACK.networks if "loopback" in names else ()
    try:
        given = AllowedNetworks.of(*(each for each in names if each != "loopback"))
    except ValueError as error:
        raise InvalidValue(f"{error}: write 10.0.0.0/8, or loopback") from None
    return AllowedNetworks((*loopback, *given.networks))


def carried_address(address: Address) -> IPv4Address | None:
    """The IPv4 address that a gateway takes out of an IPv6 address; None if it carries none."""
    if isinstance(address, IPv4Address):
        return None
    last = IPv4Address(int(address) & 0xFFFF_FFFF)
    if address.ipv4_mapped is not None or address in _NAT64:
        return last
    if (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP:
        return last
    return address.sixtofour


def _special(address: Address) -> str | None:
    """What kind of address it is; None for a public one."""
    if isinstance(address, IPv4Address):
        return _first(address, _REFUSED_4.items())
    if address in _UNICAST_6:
        return _first(address, _REFUSED_6.items())
    return _first(address, _NAMED_6.items()) or "not on the public Internet"


def _first(address: Address, networks: Iterable[tuple[Network, str]]) -> str | None:
    return next((what for network, what in networks if address in network), None)
