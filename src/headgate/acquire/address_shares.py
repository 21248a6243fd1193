"""How many workers the hosts of one network address may have at a time.

The owner of a domain can point a thousand names at one slow server. Limits per name do not hold
them, so workers are shared out by *address*: a single IPv4 address, or a /64 of IPv6, which is what
one machine gets. An IPv4 address that is carried by an IPv6 address counts as itself.

A host is *quick* if its last fetch took at most SLOW_S; a new host is not. With W workers, and a
share of S = max(W // 4, 1) for each address:

    workers of …                                                    at most
    one address                                                     S
    hosts of one address that are not quick                         S − S // 4
    all hosts that are not quick                                    W − W // 4

Invariant: these bounds hold at any time, whatever the names, addresses and durations are. While a
fetch of a host that is not quick takes longer than SLOW_S, or if the last one of the address did,
the second bound is 1 for fetches that begin.

So a slow server takes one worker of sixteen, and three until it is known to be slow. A quick host
finds a worker even at an address that it shares with slow ones (a CDN), and even if a thousand
addresses are slow.

Rejected: a budget of seconds per address. It has to be refilled at some rate, and a CDN with many
thousand quick feeds needs more than a lonely server. Networks wider than an address (/24): the
neighbours at a hoster are strangers; the last bound of the table holds whoever has many addresses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Address, ip_address

from headgate.model.addresses import carried_address

SLOW_S = 5.0
"""A fetch that takes longer is slow."""
NETWORKS_MAX = 10_000
"""Above this number, it is forgotten which networks were slow."""


def network_of(address: str) -> str:
    """The network whose workers are counted together.

    >>> network_of("192.88.0.1"), network_of("::ffff:192.88.0.1"), network_of("2600:1:2:3:4::5")
    ('192.88.0.1', '192.88.0.1', '2600:1:2:3::')
    """
    parsed = ip_address(address.partition("%")[0])
    parsed = carried_address(parsed) or parsed
    if isinstance(parsed, IPv4Address):
        return str(parsed)
    return str(type(parsed)(int(parsed) >> 64 << 64))


@dataclass(slots=True)
class _Network:
    quick: int = 0
    """Fetches of quick hosts that are under way."""
    others: dict[str, float] = field(default_factory=dict)
    """Fetches of other hosts that are under way, and since when."""
    was_slow: bool = False


class AddressShares:
    """The fetches that are under way, by network. Not thread-safe."""

    def __init__(self, workers: int) -> None:
        self.share = max(workers // 4, 1)
        self._unknown_max = workers - workers // 4
        self._networks: dict[str, _Network] = {}
        self._quick: dict[str, bool] = {}

    def may_begin(self, *, is_quick: bool) -> bool:
        """Whether a worker is left for a fetch of a host of this kind, whatever its address."""
        unknown = sum(not each for each in self._quick.values())
        return is_quick or unknown < self._unknown_max

    def begin(self, fetch: str, *, is_quick: bool) -> None:
        """A fetch gets a worker; its network may not be known yet."""
        assert fetch not in self._quick, f"'{fetch}' is under way"
        self._quick[fetch] = is_quick

    def has_room(self, network: str, now: float, *, is_quick: bool) -> bool:
        """Whether one more fetch may use this network."""
        found = self._networks.get(network)
        if found is None:
            return True
        if found.quick + len(found.others) >= self.share:
            return False
        if is_quick:
            return True
        is_slow = found.was_slow or any(now - since > SLOW_S for since in found.others.values())
        return len(found.others) < (1 if is_slow else self.share - self.share // 4)

    def enter(self, fetch: str, network: str, now: float) -> bool:
        """Count the fetch for this network; False if it has no room."""
        is_quick = self._quick[fetch]
        if not self.has_room(network, now, is_quick=is_quick):
            return False
        self._forget_idle()
        found = self._networks.setdefault(network, _Network())
        if is_quick:
            found.quick += 1
        else:
            found.others[fetch] = now
        return True

    def leave(self, fetch: str, network: str, *, took_s: float) -> None:
        """The fetch does not use this network any more."""
        found = self._networks[network]
        if self._quick[fetch]:
            # If it has become slow, its host is no longer quick; its neighbours may be.
            found.quick -= 1
        else:
            del found.others[fetch]
            found.was_slow = took_s > SLOW_S
        if not found.quick and not found.others and not found.was_slow:
            del self._networks[network]

    def end(self, fetch: str) -> None:
        """The fetch gives its worker back; it has left its networks."""
        del self._quick[fetch]

    def _forget_idle(self) -> None:
        if len(self._networks) > NETWORKS_MAX:
            self._networks = {
                name: each for name, each in self._networks.items() if each.quick or each.others
            }
