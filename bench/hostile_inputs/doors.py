"""The table of all doors: where each one is defined.

A door imports the part of the product that it leads to, so each is loaded when it is asked for.
"""

from __future__ import annotations

from pkgutil import resolve_name

from bench.hostile_inputs.door import Door

DOORS = {
    "feeds": "feed_door:FEEDS",
    "xml": "file_doors:XML",
    "json": "file_doors:JSON",
    "csv": "file_doors:CSV",
    "parquet": "file_doors:PARQUET",
    "opml": "statement_doors:OPML",
    "statements": "statement_doors:STATEMENTS",
    "stylesheets": "code_doors:STYLESHEETS",
    "patterns": "code_doors:PATTERNS",
    "snapshots": "snapshot_door:SNAPSHOTS",
    "metrics": "metrics_door:METRICS",
    "relays": "relay_door:RELAYS",
    "children": "child_door:CHILDREN",
}
CHECKS_BOUNDS = frozenset({"snapshots"})
"""Doors whose process checks every index of a kernel in a full run (NUMBA_BOUNDSCHECK). Numba reads
this when the kernels are imported, so it is known before the door is loaded."""


def door_of(name: str) -> Door:
    door = resolve_name(f"bench.hostile_inputs.{DOORS[name]}")
    assert isinstance(door, Door)
    assert door.name == name
    return door
