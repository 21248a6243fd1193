"""Files that have their whole content from one moment to the next, and keep it if power is lost.

    content ──► .name.<process> ──► fsync ──► rename ──► fsync of the folder

A new name is in the folder, which has to be written by itself.
"""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write_synced(fresh, content)
        rename_whole(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def write_synced(path: Path, content: bytes) -> None:
    """The content lasts, but not yet the name."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def rename_whole(fresh: Path, path: Path) -> None:
    """The new name lasts."""
    fresh.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
