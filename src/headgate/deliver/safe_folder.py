"""A folder in which subscribers name files: nothing outside of it is ever opened or written.

    'news/rock.rss'   ──►  open folder ──► open 'news' in it ──► 'rock.rss' in that

Every step is opened relative to the one before, without following links (O_NOFOLLOW), so there is
no race between checking a path and using it. Names with a special meaning on any system that may
read the folder are refused.

Replacing a file: the bytes are written to a temporary file next to it, which is synced and renamed
over the old one; then the folder is synced. Readers, and a crash at any time, see the old file or
the new one. The temporary file of a dead process is removed by the next write.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from headgate.deliver.errors import OutputError
from headgate.model.errors import printable

DEPTH_MAX = 8
NAME_BYTES_MAX = 200
PATHS_CACHED = 100_000
_TEMPORARY = ".headgate-"
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\]')


@lru_cache(maxsize=PATHS_CACHED)
def checked_parts(path: str) -> tuple[str, ...]:
    """The names on the way to a file, or an error that says what is wrong with the path.

    >>> checked_parts("news/rock.rss")
    ('news', 'rock.rss')
    """
    parts = tuple(path.split("/"))
    if len(parts) > DEPTH_MAX:
        raise _refused(path, f"it has more than {DEPTH_MAX} parts")
    for part in parts:
        if reason := _wrong_with(part):
            raise _refused(path, reason)
    return parts


def _wrong_with(name: str) -> str:
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "it has half a character"
    if not name:
        return "it is empty, absolute or has two slashes in a row"
    if name.startswith("."):
        return "no name in it may begin with a dot"
    if name[-1] in ". ":
        return "no name in it may end with a dot or a space"
    if _FORBIDDEN.search(name) or not name.isprintable():
        return "it has a character that not every system allows in names"
    if _RESERVED.fullmatch(name):
        return f"'{name}' is the name of a device on some systems"
    return f"a name in it is longer than {NAME_BYTES_MAX} bytes" if size > NAME_BYTES_MAX else ""


def _refused(path: str, reason: str) -> OutputError:
    return OutputError(f"the path '{printable(path)[:100]}' is refused: {reason}", lasting=True)


def read_file(folder: Path, path: str, *, bytes_max: int) -> bytes | None:
    """The bytes of a regular file below the folder; nothing where there is none."""
    *above, name = checked_parts(path)
    try:
        with _opened(folder, above, create=False) as parent:
            return read_at(parent, name, bytes_max)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OutputError(f"'{printable(path)}' cannot be read: {error.strerror}") from error


def replace_file(folder: Path, path: str, content: bytes) -> bool:
    """Whether it had to be written: a file that has this content already is left alone."""
    *above, name = checked_parts(path)
    try:
        with _opened(folder, above, create=True) as parent:
            if read_at(parent, name, len(content)) == content:
                return False
            _replace(parent, name, content)
            return True
    except OSError as error:
        raise OutputError(f"'{printable(path)}' cannot be written: {error.strerror}") from error


@contextmanager
def _opened(folder: Path, above: list[str], *, create: bool) -> Iterator[int]:
    current = open_parent(folder, above, create=create)
    try:
        yield current
    finally:
        os.close(current)


def open_parent(folder: Path, above: list[str], *, create: bool = True) -> int:
    """Open the folder that these names lead to, as a file descriptor; the names are checked."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    if create:
        folder.mkdir(parents=True, exist_ok=True)
    current = os.open(folder, flags)  # the folder itself is the operator's, and may be a link
    try:
        for name in above:
            if create:
                _make_folder(current, name)
            inner = os.open(name, flags | os.O_NOFOLLOW, dir_fd=current)
            os.close(current)
            current = inner
    except BaseException:
        os.close(current)
        raise
    return current


def _make_folder(parent: int, name: str) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=parent)
        os.fsync(parent)


def read_at(parent: int, name: str, bytes_max: int) -> bytes | None:
    """Nothing where there is no regular file of at most this size: devices and pipes may block."""
    try:
        descriptor = os.open(
            name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent
        )
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > bytes_max:
            return None
        return file.read(bytes_max)


def _replace(parent: int, name: str, content: bytes) -> None:
    temporary = f"{_TEMPORARY}{name}"
    with suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=parent)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o644, dir_fd=parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=parent)
        raise
    os.fsync(parent)
