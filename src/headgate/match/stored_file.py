"""Dataclasses of arrays in snapshot files: written once, mapped by any number of processes.

    write_stored(folder, part, …)  ──►  folder/2f9c…51.headgate  ──►  open_stored(path, …)

Law: what was written and opened answers as what was made. Nothing is compiled or copied when it is
opened: arrays are views of the file (snapshot.py). Whatever a file says, what is made of it stays
within its arrays, as its `check` looks at every index first (bounds.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, TypeVar

from headgate.match.snapshot import Verify, open_snapshot, write_snapshot, write_snapshot_as
from headgate.match.stored import WrongShape, put_together, take_apart
from headgate.model.errors import SnapshotError, printable


class Checked(Protocol):
    def check(self) -> None:
        """Raise `SnapshotError` where a stored place is out of its bounds."""


Part = TypeVar("Part", bound=Checked)


def write_stored(folder: Path, part: Checked, *, kind: str, version: int) -> Path:
    """The file with this content; the same content has the same file."""
    arrays, stored = take_apart(part)
    return write_snapshot(folder, arrays, {"kind": kind, "version": version, "stored": stored})


def write_stored_as(path: Path, part: Checked, *, kind: str, version: int) -> None:
    """The same under a name of the caller's choice; it is opened with `any_name`."""
    arrays, stored = take_apart(part)
    write_snapshot_as(path, arrays, {"kind": kind, "version": version, "stored": stored})


def open_stored(
    path: Path,
    type_: type[Part],
    *,
    kind: str,
    version: int,
    verify: Verify = "checksum",
    any_name: bool = False,
) -> Part:
    """What is in this file; use verify="full" for a file that comes from elsewhere."""
    snapshot = open_snapshot(path, verify=verify, any_name=any_name)
    metadata = snapshot.metadata
    if metadata.get("kind") != kind:
        raise SnapshotError(f"{path} holds no {kind}; make one with the catalog at hand")
    if metadata.get("version") != version:
        raise SnapshotError(
            f"{path} holds a {kind} of version {metadata.get('version')}, "
            f"and this is version {version}; make it anew"
        )
    try:
        part = put_together(type_, snapshot.arrays, metadata.get("stored"))
        part.check()
    except (WrongShape, SnapshotError) as reason:
        raise SnapshotError(f"{path} holds no sound {kind}: {printable(str(reason))}") from None
    return part
