"""Programs in files (stored_file.py)."""

from __future__ import annotations

from pathlib import Path

from headgate.match.program import Program
from headgate.match.snapshot import Verify
from headgate.match.stored_file import open_stored, write_stored

KIND, VERSION = "program", 2
"""The version is that of the fields of a program; a file of another one is refused."""


def write_program(folder: Path, program: Program) -> Path:
    """The file with this program; the same program has the same file."""
    return write_stored(folder, program, kind=KIND, version=VERSION)


def open_program(path: Path, *, verify: Verify = "checksum") -> Program:
    """The program in this file; use verify="full" for a file that comes from elsewhere."""
    return open_stored(path, Program, kind=KIND, version=VERSION, verify=verify)
