"""Sites and links of a wide area network, and where views are in it ([Delta §2.2, §5.5]).

    site       reads, processes, sends and receives, each at its own rate and price
    region     a group of sites; there is a delay between two regions, and a smaller one within one
    view       is at one site, and receives a number of bytes for each document

The price of a resource is the weight of one byte of it in the utilisation, which is the weighted
sum U of the paper. The source is a view of whole documents at a site of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.model.errors import InvalidValue
from headgate.network.configuration_problem import Floats, Ints

READING, PROCESSING, SENDING, RECEIVING = range(4)
RESOURCES = ("reading", "processing", "sending", "receiving")


@dataclass(frozen=True, slots=True, eq=False)
class WideArea:
    view_site: Ints
    view_bytes: Floats
    source_site: int
    document_bytes: float
    prices: Floats
    """[site, resource]: the weight of a byte in the utilisation."""
    seconds_per_byte: Floats
    """[site, resource]"""
    region: Ints
    """[site]"""
    delay_s: Floats
    """[region, region]: one way."""
    start_s: float
    """The fixed time of each message at its sender."""

    def __post_init__(self) -> None:
        sites = len(self.region)
        if len(self.view_site) != len(self.view_bytes):
            raise InvalidValue(
                f"{len(self.view_site):,} views have sites, {len(self.view_bytes):,} have sizes"
            )
        if self.prices.shape != (sites, 4) or self.seconds_per_byte.shape != (sites, 4):
            raise InvalidValue(f"prices and seconds: expected four for each of {sites:,} sites")
        if not 0 <= self.source_site < sites or not _are_among(self.view_site, sites):
            raise InvalidValue(f"a view or the source is at a site that is not among {sites:,}")
        if not _are_among(self.region, len(self.delay_s)):
            raise InvalidValue(f"a site is in a region that is not among {len(self.delay_s):,}")
        if not self.start_s > 0:
            raise InvalidValue(f"a message takes {self.start_s} s: expected a number above zero")
        for name in ("view_bytes", "prices", "seconds_per_byte", "delay_s"):
            values = getattr(self, name)
            if not (np.isfinite(values) & (values >= 0)).all():
                raise InvalidValue(f"{name}: expected numbers of zero or more")

    @property
    def site_count(self) -> int:
        return len(self.region)


def _are_among(numbers: Ints, count: int) -> bool:
    return not len(numbers) or (int(numbers.min()) >= 0 and int(numbers.max()) < count)


def uniform_area(
    view_bytes: Floats,
    *,
    document_bytes: float,
    sites: int | None = None,
    regions: int = 9,
    seed: int = 2026,
) -> WideArea:
    """A network like the paper's: machines of equal speed in nine cities.

    Without `sites` each view has a site of its own, as in §2.2; else views are placed at random.
    Delays are those of a country: 1 ms within a city, up to 12 ms between two.
    """
    chance = np.random.default_rng([seed, len(view_bytes)])
    count = (len(view_bytes) if sites is None else sites) + 1
    if sites is None:
        place = np.arange(len(view_bytes), dtype=np.int32)
    else:
        place = chance.integers(0, sites, len(view_bytes)).astype(np.int32)
    town = chance.random((regions, 2))
    distance = np.hypot(*(town[:, None] - town[None, :]).transpose(2, 0, 1))
    delay_s = 0.001 + 0.011 * distance / max(float(distance.max()), 1e-9)
    return WideArea(
        view_site=place,
        view_bytes=view_bytes,
        source_site=count - 1,
        document_bytes=document_bytes,
        prices=np.ones((count, 4)),
        seconds_per_byte=np.tile(_SECONDS_PER_BYTE, (count, 1)),
        region=chance.integers(0, regions, count).astype(np.int32),
        delay_s=delay_s,
        start_s=0.0005,
    )


_SECONDS_PER_BYTE = np.array([1 / 200e6, 1 / 20e6, 1 / 12.5e6, 1 / 12.5e6])
"""A disk of 200 MB/s, structural joins at 20 MB/s, links of 100 Mbit/s."""
