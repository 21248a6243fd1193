"""Restoring a backup (backup.py) to a new catalog and a new folder.

    backup.json ──► every file there, with its size and hash ──► copies ──► renamed into place
    nothing is written before all of it was checked, and nothing is written over

The restored folder is what it was at the backup's position of the log; the next run goes on from
there: it reads what the sources have behind it, and delivers what was not delivered. Two systems
must not go on from one backup: both would deliver.

The system that was lost may have gone on after the backup. An id of a posted event is its place in
the spool, and receivers know the ids of messages that are made of it; so posts to the restored
system begin SEGMENTS_LEFT_OUT segments later, beyond what the lost one has given.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from headgate.acquire.spool import leave_out_segments
from headgate.api.backup import (
    CATALOG,
    FOLDER,
    FORMAT,
    KEY,
    MANIFEST,
    BackupManifest,
    CopiedFile,
    copy_file,
    digest_of,
)
from headgate.catalog.database import sqlite_file
from headgate.model.errors import InvalidValue, StateError
from headgate.store.data_folder import make_private_folder
from headgate.store.whole_files import fresh_name, rename_whole

PROBLEMS_SHOWN_MAX = 5
SEGMENTS_LEFT_OUT = 100
"""Of 64 MB each."""
MANIFEST_BYTES_MAX = 1_000_000_000


def restore(source: Path, catalog_url: str, folder: Path) -> BackupManifest:
    """Check a backup, and copy it to where there is nothing yet."""
    manifest = read_manifest(source)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidValue(f"'{folder}' is there already: restore to a new folder (--folder)")
    catalog = sqlite_file(catalog_url)
    has_catalog = CATALOG in manifest.files
    if has_catalog and catalog is None:
        raise InvalidValue("the backup has an SQLite catalog: name a new file by --catalog")
    if has_catalog and catalog is not None and catalog.exists():
        raise InvalidValue(f"'{catalog}' is there already: restore to a new file (--catalog)")
    if problems := list(find_damage(source, manifest)):
        more = len(problems) - PROBLEMS_SHOWN_MAX
        shown = [*problems[:PROBLEMS_SHOWN_MAX], *([f"{more:,} more"] if more > 0 else [])]
        raise StateError(f"the backup '{source}' is damaged: {'; '.join(shown)}")
    _restore_folder(source, manifest, folder)
    if has_catalog:
        assert catalog is not None, "that was checked"
        _restore_file(source, manifest, CATALOG, catalog)
        if KEY in manifest.files:
            _restore_file(source, manifest, KEY, catalog.with_name(f"{catalog.name}.key"))
    return manifest


def read_manifest(source: Path) -> BackupManifest:
    path = source / MANIFEST
    try:
        if path.stat().st_size > MANIFEST_BYTES_MAX:
            raise ValueError("it is too large")
        found = json.loads(path.read_bytes())
        if found["format"] != FORMAT:
            raise StateError(
                f"'{path}' has the format {found['format']}: restore it by a newer version"
            )
        files = {_checked_name(name): CopiedFile(**each) for name, each in found["files"].items()}
        return BackupManifest(**{**found, "files": files, "notes": tuple(found["notes"])})
    except FileNotFoundError:
        raise StateError(
            f"'{source}' is no backup, or one that was not finished: it has no {MANIFEST}"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StateError(f"'{path}' is damaged: {error}") from None


def _checked_name(name: str) -> str:
    """A name that stays within the backup, and within the folder that is restored."""
    path = PurePosixPath(name)
    is_known = name in (CATALOG, KEY) or (path.parts[:1] == (FOLDER,) and len(path.parts) > 1)
    if not is_known or ".." in path.parts or path.is_absolute() or "\x00" in name:
        raise ValueError(f"it names the file {name!r}")
    return name


def find_damage(source: Path, manifest: BackupManifest) -> Iterator[str]:
    """What is wrong with the files of a backup."""
    for name, expected in manifest.files.items():
        path = source / name
        if path.is_symlink() or not path.is_file():
            yield f"'{name}' is missing"
        elif (size := path.stat().st_size) != expected.bytes:
            yield f"'{name}' has {size:,} bytes instead of {expected.bytes:,}"
        elif digest_of(path) != expected:
            yield f"'{name}' has another content"


def _restore_folder(source: Path, manifest: BackupManifest, folder: Path) -> None:
    """The folder appears under its name when it is whole."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = fresh_name(folder)
    try:
        make_private_folder(fresh)
        for name in manifest.files:
            path = PurePosixPath(name)
            if path.parts[0] == FOLDER:
                _restore_file(source, manifest, name, fresh.joinpath(*path.parts[1:]))
        for spool in fresh.glob("sources/*/spool"):
            leave_out_segments(spool, SEGMENTS_LEFT_OUT)
        if folder.exists():
            folder.rmdir()  # it is empty
        rename_whole(fresh, folder)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def _restore_file(source: Path, manifest: BackupManifest, name: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if copy_file(source / name, target) != manifest.files[name]:
        raise StateError(f"'{name}' of the backup has changed while it was read")
