"""Programs in snapshot files: written once, mapped by any number of processes.

    write_program(folder, program)  ──►  folder/2f9c…51.headgate  ──►  open_program(path)

Law: a program that was written and opened answers as the one that was compiled. Nothing is compiled
or copied when it is opened: its arrays are views of the file (snapshot.py). Whatever a file says, a
program made of it stays within its arrays, as every index is checked first (bounds.py).
"""

from __future__ import annotations

from pathlib import Path

from headgate.match.program import Program
from headgate.match.snapshot import Verify, open_snapshot, write_snapshot
from headgate.match.stored import WrongShape, put_together, take_apart
from headgate.model.errors import SnapshotError, printable

KIND = "program"
VERSION = 1
"""Of the fields of a program. A file of another version is refused: compile it anew."""


def write_program(folder: Path, program: Program) -> Path:
    """The file with this program; the same program has the same file."""
    arrays, stored = take_apart(program)
    return write_snapshot(
        folder, arrays, {"kind": KIND, "program_version": VERSION, "program": stored}
    )


def open_program(path: Path, *, verify: Verify = "checksum") -> Program:
    """The program in this file; use verify="full" for a file that comes from elsewhere."""
    snapshot = open_snapshot(path, verify=verify)
    metadata = snapshot.metadata
    if metadata.get("kind") != KIND:
        raise SnapshotError(f"{path} holds no program; compile one with the catalog at hand")
    if metadata.get("program_version") != VERSION:
        raise SnapshotError(
            f"{path} holds a program of version {metadata.get('program_version')}, "
            f"and this is version {VERSION}; compile it anew"
        )
    try:
        program = put_together(Program, snapshot.arrays, metadata.get("program"))
        program.check()
    except (WrongShape, SnapshotError) as reason:
        raise SnapshotError(f"{path} holds no sound program: {printable(str(reason))}") from None
    return program
