"""A log at a URL: objects of S3, Google Cloud Storage or Azure, with copies on this machine.

    create    PUT with If-None-Match: *      one caller succeeds, whoever races
    write     PUT, in parts if it is large   names are unique
    read      GET                            entries of the log; never kept
    map       GET once, then the copy        segments, files of items (object_cache.py)
    path      the same, as a file            plans

A request that fails is repeated by the library for some seconds. An error that stays is
`LogUnavailable`, which is also an OSError: the caller of `create` does not know then whether the
object was created, and looks (`Sequencer`). A repeated `create` may also find its own object: it
returns False, and the sequencer looks too.

The library is obstore (object_store in Rust): it signs requests, repeats them, and knows how each
service expresses "create if absent". Rejected: boto3 and s3fs (S3 only, three times the size);
Arrow's file systems (no conditional PUT); Hadoop's s3a (needs the JVM, and readers have none).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import ObjectStore

from headgate.model.errors import LogUnavailable, printable
from headgate.store.object_cache import ObjectCache
from headgate.store.open_storage import open_storage

PART_BYTES = 16_000_000
"""Larger objects are sent and received in parts: the library's limit of time is for a request."""
REQUESTS_AT_ONCE = 16
REASON_LENGTH_MAX = 200


class ObjectStorage:
    """Any number of threads; not across a fork (each process opens its own: open_storage.py)."""

    def __init__(self, store: ObjectStore, url: str, cache: ObjectCache) -> None:
        self.url = url
        self._store, self._cache = store, cache

    def __reduce__(self) -> tuple[object, ...]:
        """Sent to other processes as its address: the environment there has the keys."""
        return open_storage, (self.url,)

    def create(self, name: str, content: bytes) -> bool:
        with self._reporting("create", name):
            try:
                obstore.put(self._store, name, content, mode="create")
            except (AlreadyExistsError, PreconditionError):
                return False
        return True

    def write(self, name: str, content: bytes | pa.Buffer) -> None:
        view = memoryview(content).cast("B")
        with self._reporting("write", name):
            obstore.put(
                self._store,
                name,
                view,
                use_multipart=len(view) > PART_BYTES,
                chunk_size=PART_BYTES,
                max_concurrency=4,
            )

    def read(self, name: str) -> bytes | None:
        with self._reporting("read", name):
            try:
                return bytes(obstore.get(self._store, name).bytes())
            except FileNotFoundError:
                return None

    def read_many(self, names: Sequence[str]) -> list[bytes | None]:
        if len(names) < 2:
            return [self.read(name) for name in names]
        with ThreadPoolExecutor(min(len(names), REQUESTS_AT_ONCE)) as threads:
            return list(threads.map(self.read, names))

    def map(self, name: str) -> pa.Buffer:
        while True:
            try:
                with pa.memory_map(str(self.path(name))) as file:
                    return file.read_buffer()
            except FileNotFoundError:
                if self._cache.path(name).exists() or self._is_gone(name):
                    raise
                # Otherwise another process has swept the cache just now.

    def path(self, name: str) -> Path:
        return self._cache.use(name) or self._cache.add(name, self._fetched(name))

    def names(self, folder: str) -> Iterator[str]:
        for name, _ in self._listed(folder):
            yield name

    def ages_s(self, folder: str) -> Iterator[tuple[str, float]]:
        now = datetime.fromtimestamp(time.time(), UTC)
        for name, written in self._listed(folder):
            yield name, (now - written).total_seconds()

    def remove(self, name: str) -> None:
        self._cache.remove(name)
        with self._reporting("remove", name):
            try:
                obstore.delete(self._store, name)
            except FileNotFoundError:
                return

    def _fetched(self, name: str) -> bytes | pa.Buffer:
        with self._reporting("read", name):
            found = obstore.get(self._store, name)
            size = int(found.meta["size"])
            if size <= PART_BYTES:
                return bytes(found.bytes())
            sink = pa.BufferOutputStream()
            for start in range(0, size, PART_BYTES):
                end = min(start + PART_BYTES, size)
                sink.write(bytes(obstore.get_range(self._store, name, start=start, end=end)))
            return sink.getvalue()

    def _is_gone(self, name: str) -> bool:
        with self._reporting("look for", name):
            try:
                obstore.head(self._store, name)
            except FileNotFoundError:
                return True
        return False

    def _listed(self, folder: str) -> Iterator[tuple[str, datetime]]:
        with self._reporting("list", f"{folder}/"):
            for chunk in obstore.list(self._store, f"{folder}/"):
                yield from ((each["path"], each["last_modified"]) for each in chunk)

    @contextmanager
    def _reporting(self, what: str, name: str) -> Iterator[None]:
        try:
            yield
        except BaseError as error:
            reason = _reason(error)
            raise LogUnavailable(f"cannot {what} '{name}' at {self.url}: {reason}") from None


def _reason(error: BaseError) -> str:
    """What went wrong, without the body of the answer, which may have keys and signatures."""
    text = str(error).split("\n", maxsplit=1)[0].split("<", maxsplit=1)[0]
    return f"{type(error).__name__}: {printable(text)[:REASON_LENGTH_MAX]}"
