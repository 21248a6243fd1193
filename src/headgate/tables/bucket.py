"""One bucket of join values: its rows between two micro-batches.

    state of a group      base ─┬─ log 0 ─ log 1 ─ log 2        head: the token of the latest rows
                                │
    in a worker's memory  a server with the rows of some token, ready to continue

A server stays in the memory of the worker that used it last. The next batch of the bucket may run
in another worker, or be a replay of one whose outcome was lost. So a cached server is used only if
it has the *token* in the head of the state, a random number drawn for each batch. With an older
token it replays the log entries after that token; otherwise base and log are read.

A batch adds one entry to the log: its changes, as they arrived. When the log is longer than the
base, all rows become the new base. So a small batch writes little, and in total each change is
written about twice.

Invariant: whichever worker runs a batch, with or without a cached server, and however often, the
result is the same rows with the same version numbers, and the same messages.

The state is a map from names to bytes: Spark's in a run (pipeline/table_join_stage.py), a
dictionary in tests."""

from __future__ import annotations

import json
import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Protocol

import numpy as np

from headgate.match.array_file_layout import JSON
from headgate.match.texts import Texts
from headgate.model.errors import StateError
from headgate.tables.array_blob import pack, unpack
from headgate.tables.box_tree_kernels import Floats
from headgate.tables.change_pieces import combine_pieces, unpack_piece
from headgate.tables.changes import ChangeColumns, selection_values
from headgate.tables.join_groups import JoinGroup
from headgate.tables.result_join import ResultJoin
from headgate.tables.rows_state import restore, save
from headgate.tables.server import SelectJoinServer

Attributes = tuple[tuple[str, ...], ...]
"""The attributes of each table that subscriptions restrict."""
Server = SelectJoinServer | ResultJoin
BASE_MIN = 1 << 20
"""A shorter log is never replaced by a new base."""
HELD_MAX = 256
"""The most servers in a worker's memory; the least recently used is dropped."""


class BucketState(Protocol):
    """The state of a bucket: a map from names to bytes."""

    def get(self, name: str) -> bytes | None: ...
    def put(self, name: str, content: bytes) -> None: ...
    def remove(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class GroupUpdate:
    """The effect of a batch on the rows of a group: load history, expire rows, apply changes."""

    now_s: float
    silent: Sequence[bytes] = ()
    """Packed pieces of changes that are applied without messages: the history of a new group."""
    announced: Sequence[bytes] = ()
    """Packed pieces of changes that messages and results are written for."""

    def packed(self, before: str, after: str) -> bytes:
        contents = [*self.silent, *self.announced]
        sizes = np.array([len(each) for each in contents], np.int64)
        head: dict[str, JSON] = {
            "before": before,
            "after": after,
            "now_s": self.now_s,
            "silent": len(self.silent),
        }
        return pack(head, {"sizes": sizes, "content": np.frombuffer(b"".join(contents), np.uint8)})

    @property
    def size(self) -> int:
        return sum(map(len, self.silent)) + sum(map(len, self.announced))


@dataclass(frozen=True, slots=True)
class _LogEntry:
    """An update, and the tokens of the rows before and after it."""

    before: str
    after: str
    update: GroupUpdate

    @classmethod
    def unpacked(cls, blob: bytes) -> _LogEntry:
        head, arrays = unpack(blob)
        try:
            ends = np.cumsum(arrays["sizes"]).tolist()
            content = arrays["content"].tobytes()
            parts = [content[a:b] for a, b in zip([0, *ends], ends, strict=False)]
            cut = int(str(head["silent"]))
            update = GroupUpdate(float(str(head["now_s"])), parts[:cut], parts[cut:])
            return cls(str(head["before"]), str(head["after"]), update)
        except (KeyError, ValueError) as error:
            raise StateError(f"the log of a join cannot be read: {error}") from None


@dataclass(frozen=True, slots=True)
class _Head:
    """The token of the latest rows, and the extent of base and log."""

    token: str = ""
    base_bytes: int = 0
    first: int = 0
    """The number of the first entry of the log."""
    next: int = 0
    log_bytes: int = 0

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, content: bytes | None) -> _Head:
        try:
            return cls() if content is None else cls(**json.loads(content))
        except (ValueError, TypeError) as error:
            raise StateError(f"the head of a join's state cannot be read: {error}") from None


class BucketServer:
    """The server of one group and bucket, for the attributes that its subscriptions restrict."""

    def __init__(self, group: JoinGroup, numbers: tuple[int, int]) -> None:
        self.group = group
        self._numbers = numbers
        self.attributes: Attributes = ((),) * len(group.tables)
        self.server = self._empty()

    def select_by(self, attributes: Attributes) -> None:
        """Keep the selection values of these attributes from now on."""
        if attributes != self.attributes:
            state = self.save()
            self.attributes = attributes
            self.server = self._empty()
            self.restore(state)

    def restore(self, state: bytes) -> None:
        restore(self.server.rows, state, shape=str(self.attributes), values=self._values)

    def save(self) -> bytes:
        return save(self.server.rows, shape=str(self.attributes))

    def run(
        self, update: GroupUpdate, announce: Callable[[ChangeColumns], object] | None = None
    ) -> None:
        """Apply an update to the rows; `announce` applies changes with messages and results."""
        apply = announce or self.server.apply_silently
        if update.silent:
            self.server.apply_silently(self._columns(update.silent))
        expired = self.server.expired(update.now_s)
        if len(expired):
            apply(expired)
        if update.announced:
            apply(self._columns(update.announced))

    def _columns(self, contents: Sequence[bytes]) -> ChangeColumns:
        return combine_pieces(
            list(map(unpack_piece, contents)), self.group.formats, self.attributes
        )

    def _empty(self) -> Server:
        group, numbers = self.group, self._numbers
        dimensions = [max(1, len(names)) for names in self.attributes]
        if group.is_for_results:
            return ResultJoin(group.join_attributes, dimensions, numbers=numbers)
        left, right = dimensions
        return SelectJoinServer((left, right), join_attributes=len(group.on), numbers=numbers)

    def _values(self, side: int, payloads: Texts) -> Floats:
        names = self.attributes[side]
        return selection_values(self.group.formats[side].numbers(payloads, names))


@dataclass(slots=True)
class ServerCache:
    """The servers in a worker's memory, by bucket and group, each with the token of its rows."""

    servers: OrderedDict[tuple[str, str], tuple[str, BucketServer]] = field(
        default_factory=OrderedDict
    )

    def take(self, place: str, group: str) -> tuple[str, BucketServer] | None:
        """Remove a server from the cache and return it with its token: the caller may change it."""
        return self.servers.pop((place, group), None)

    def keep(self, place: str, group: str, token: str, server: BucketServer) -> None:
        """Put a server back, with the token of its rows."""
        self.servers[place, group] = token, server
        while len(self.servers) > HELD_MAX:
            self.servers.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Bucket:
    """One bucket, for all groups."""

    number: int
    count: int
    """The number of buckets."""
    place: str
    """A name for this bucket, unique in the worker."""
    blobs: BucketState
    held: ServerCache

    def opened(self, group: JoinGroup, *, is_fresh: bool) -> BucketServer:
        """The server with the rows of the state; without rows if the group is new."""
        if is_fresh:
            self.forget(group.name)
        head = self._head(group.name)
        token, server = self.held.take(self.place, group.name) or ("", None)
        if server is not None and token == head.token and token:
            return server
        log = self._log(group.name, head)
        resume_at = [at for at, each in enumerate(log) if each.before == token]
        if server is None or not token or not resume_at:
            server, resume_at = BucketServer(group, (self.number, self.count)), [0]
            if (base := self.blobs.get(f"{group.name}/base")) is not None:
                server.restore(base)
        for entry in log[resume_at[0] :]:
            server.run(entry.update)
        return server

    def commit(self, group: str, update: GroupUpdate, server: BucketServer) -> None:
        """Save that the rows are those of the server after this update."""
        head = self._head(group)
        token = secrets.token_hex(8)
        if head.log_bytes + update.size > max(BASE_MIN, head.base_bytes):
            base = server.save()
            self._cut_log(group, head)
            self.blobs.put(f"{group}/base", base)
            head = _Head(token, len(base), head.next, head.next, 0)
        else:
            entry = update.packed(head.token, token)
            self.blobs.put(f"{group}/log/{head.next}", entry)
            head = replace(
                head, token=token, next=head.next + 1, log_bytes=head.log_bytes + len(entry)
            )
        self.blobs.put(f"{group}/head", head.to_bytes())
        self.held.keep(self.place, group, token, server)

    def forget(self, group: str) -> None:
        """Delete all rows of this group."""
        self.held.take(self.place, group)
        self._cut_log(group, self._head(group))
        self.blobs.remove(f"{group}/base")
        self.blobs.remove(f"{group}/head")

    def _head(self, group: str) -> _Head:
        return _Head.from_bytes(self.blobs.get(f"{group}/head"))

    def _log(self, group: str, head: _Head) -> list[_LogEntry]:
        entries: list[_LogEntry] = []
        for number in range(head.first, head.next):
            entry = self.blobs.get(f"{group}/log/{number}")
            if entry is None:
                raise StateError(f"entry {number} of a join's log is missing")
            entries.append(_LogEntry.unpacked(entry))
        return entries

    def _cut_log(self, group: str, head: _Head) -> None:
        for number in range(head.first, head.next):
            self.blobs.remove(f"{group}/log/{number}")
