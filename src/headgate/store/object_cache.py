"""Copies of a URL's objects on this machine: what is read again costs no request, and is mapped.

    <cache>/<hash of the URL>/data/<group>/<uuid>.segment     as at the URL
                             /plans/<hash>.snapshot.json

Only objects that never change are kept: names of data are unique, names of plans are hashes of
their content. Entries of the log are not kept: a log that is deleted and begun anew at the same
URL has other entries under the same names.

A copy is written whole under a unique temporary name and renamed, so any number of processes use
one cache. *Data* is bounded in bytes: what was used longest ago goes first. A file that is mapped
stays readable after it was removed. *Plans* go when they were not used for a month, whatever their
size: a worker may need one hours after it has learnt its path (snapshot.py looks at each of them
once a day).

Cost: an open is a change of the file's time, 5 µs. A sweep lists the cache; there is one for every
sixteenth of the bound that a process has added.

Rejected: file names that are hashes of URL and name. The checks of plan files compare the name with
the content, and a person cannot see what a cache has. Names are checked instead.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from headgate.model.errors import LogError
from headgate.store.whole_files import write_whole

FOLDER_VARIABLE = "HEADGATE_CACHE"
BYTES_VARIABLE = "HEADGATE_CACHE_BYTES"
BYTES_MAX = 8_000_000_000
PLANS_KEPT_S = 30 * 86_400.0
ABANDONED_S = 3_600.0
KEPT_SHARE = 0.8
"""A sweep leaves so much of the bound, so that not every new object needs one."""
_NAME = re.compile(r"[A-Za-z0-9_=@-][A-Za-z0-9_.=@-]*(/[A-Za-z0-9_=@-][A-Za-z0-9_.=@-]*)*")


class ObjectCache:
    """The copies of one URL's objects. Any number of threads and processes."""

    def __init__(self, url: str, *, root: Path | None = None, bytes_max: int | None = None) -> None:
        self._root = root or cache_folder()
        self._own = self._root / hashlib.sha256(url.encode()).hexdigest()[:16]
        self._bytes_max = bytes_max or int(os.environ.get(BYTES_VARIABLE, BYTES_MAX))
        self._added = self._bytes_max  # the first addition of a process sweeps

    def path(self, name: str) -> Path:
        """Where the copy of an object lies, or would lie."""
        return self._own / checked_name(name)

    def use(self, name: str) -> Path | None:
        """The copy of an object, if there is one; it counts as used now."""
        path = self.path(name)
        try:
            os.utime(path)
        except FileNotFoundError:
            return None
        return path

    def add(self, name: str, content: bytes | pa.Buffer) -> Path:
        path = self.path(name)
        write_whole(path, content)
        self._added += len(content)
        if self._added >= self._bytes_max // 16:
            self._added = 0
            self._sweep()
        return path

    def remove(self, name: str) -> None:
        self.path(name).unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Remove what is over the bound, of all URLs."""
        data = sorted(_used(self._root, "data"))
        total = sum(size for _, size, _ in data)
        goal = total if total <= self._bytes_max else self._bytes_max * KEPT_SHARE
        for _, size, path in data:
            if total <= goal:
                break
            path.unlink(missing_ok=True)
            total -= size
        old_s = time.time() - PLANS_KEPT_S
        for used_s, _, path in _used(self._root, "plans"):
            if used_s < old_s:
                path.unlink(missing_ok=True)


def _used(root: Path, kind: str) -> list[tuple[float, int, Path]]:
    """When each copy was used last, its size and its path; also temporary files that a killed
    process has left."""
    found: list[tuple[float, int, Path]] = []
    abandoned_s = time.time() - ABANDONED_S
    for folder in root.glob(f"*/{kind}"):
        for path in folder.rglob("*"):
            with suppress(FileNotFoundError):  # another process sweeps at the same time
                if path.is_file():
                    about = path.stat()
                    if not path.name.startswith(".") or about.st_mtime < abandoned_s:
                        found.append((about.st_mtime, about.st_size, path))
    return found


def checked_name(name: str) -> str:
    """Names come from the log at the URL: none may lead out of a folder.

    >>> checked_name("data/feeds-1f0c/8d3e.segment")
    'data/feeds-1f0c/8d3e.segment'
    """
    if _NAME.fullmatch(name) is None:
        raise LogError(f"the log names an object '{name[:200]!r}', which cannot be its name")
    return name


def cache_folder() -> Path:
    """The folder of this user's copies on this machine."""
    given = os.environ.get(FOLDER_VARIABLE)
    if given:
        return Path(given).absolute()
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("HOME")
    if home and os.access(home, os.W_OK):
        cache = Path(home) if os.environ.get("XDG_CACHE_HOME") else Path(home) / ".cache"
        return cache.absolute() / "headgate" / "objects"
    # Executors may have no home.
    folder = Path(tempfile.gettempdir()) / f"headgate-{os.getuid()}"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder.stat().st_uid != os.getuid():
        raise LogError(f"'{folder}' belongs to another user; set {FOLDER_VARIABLE} or TMPDIR")
    return folder / "objects"
