"""The file that describes a network of relays: one JSON object, the same for all sites.

    {"format": "headgate-relays-1", "network": "jobs", "source": "source",
     "sites": {"source": "127.0.0.1:7000", "Paris": "127.0.0.1:7001"},
     "views": [{"name": "Asia", "site": "Paris", "pattern": […], "reads": [], "at": "Paris"}]}

The token is not in it. Each relay gets it separately.
"""

from __future__ import annotations

import json
from pathlib import Path

from headgate.model.errors import RelayError
from headgate.relay.deployment import (
    Address,
    Deployment,
    Json,
    RelayView,
    json_of_pattern,
    pattern_of_json,
)
from headgate.store.whole_files import write_whole

FORMAT = "headgate-relays-1"


def write_deployment(path: Path, deployment: Deployment) -> None:
    views = [
        {
            "name": each.name,
            "site": each.site,
            "pattern": json_of_pattern(each.pattern),
            "reads": list(each.reads),
            "at": each.computed_at,
        }
        for each in deployment.views
    ]
    told = {
        "format": FORMAT,
        "network": deployment.network,
        "source": deployment.source,
        "sites": {site: str(address) for site, address in deployment.addresses.items()},
        "views": views,
    }
    try:
        write_whole(path, json.dumps(told, ensure_ascii=False).encode())
    except OSError as error:
        raise RelayError(f"{path} cannot be written: {error.strerror}") from None


def read_deployment(path: Path) -> Deployment:
    try:
        found: Json = json.loads(path.read_bytes())
    except OSError as error:
        raise RelayError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise RelayError(f"{path} is no JSON: {error}") from None
    try:
        return _deployment(found)
    except RelayError as error:
        raise RelayError(f"{path}: {error}") from None


def _deployment(found: Json) -> Deployment:
    match found:
        case {
            "format": str(format_),
            "network": str(network),
            "source": str(source),
            "sites": dict(sites),
            "views": list(views),
        }:
            if format_ != FORMAT:
                raise RelayError(f"this is '{format_}', expected '{FORMAT}'")
            addresses = {site: address_of(str(each)) for site, each in sites.items()}
            known = tuple(_view(number, each) for number, each in enumerate(views))
            return Deployment(network, source, addresses, known)
    raise RelayError("expected format, network, source, sites and views")


def _view(number: int, found: Json) -> RelayView:
    match found:
        case {
            "name": str(name),
            "site": str(site),
            "pattern": pattern,
            "reads": list(reads),
            "at": str(place),
        } if all(type(each) is int for each in reads):
            members = tuple(each for each in reads if isinstance(each, int))
            try:
                return RelayView(name, site, pattern_of_json(pattern), members, place)
            except RelayError as error:
                raise RelayError(f"view {name}: {error}") from None
    raise RelayError(f"view {number}: expected name, site, pattern, reads and at")


def address_of(text: str) -> Address:
    """'host:port', with brackets around an IPv6 address.

    >>> address_of("[::1]:7001")
    Address(host='::1', port=7001)
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise RelayError(f"'{text}' is no address: expected host:port")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))
