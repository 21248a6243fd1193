"""The folder of a run: everything that must survive it.

log/          the entries of the log: what exists, in one order (log.py)      ┐ or at the address
data/         items as Parquet, and beside each file its segment (log_writer.py) ┘ in log.url
log.url       where the log is, if it is not here
data.root     the folder that the last run was allowed to read files from
plans/        source plans and snapshots, named by their content; copies at log.url for executors
lists/        which sources each group has at the moment
checkpoints/  Spark's own record of each query
sources/      state of the sources: fetched bodies, seen entries, rejected input
tables/       the next batches of table changes for table joins, and their progress
messages/     messages of table joins for clients and relays, as Parquet by day
operators.json  measured cost and selectivity of operators
    feed-costs.json  CPU time of expensive feeds
run.lock      held by the process that runs the folder
status.json   the heartbeat of the last run (pipeline/heartbeat.py)
deliver.db    cursors of delivery, and what differs from them (deliver/delivery_tables.py)
state.url     where that database is, if it is not deliver.db
"""

from __future__ import annotations

import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from headgate.model.errors import StateError
from headgate.store.file_lock import FileLock
from headgate.store.log_storage import LogStorage
from headgate.store.open_storage import checked_log, open_storage, probe, scheme_of
from headgate.store.whole_files import write_whole


@dataclass(frozen=True, slots=True)
class DataFolder:
    path: Path
    log: str = ""
    """The address of the log; empty if it is in the folder."""
    state: str = ""
    """The URL of the delivery database; empty for deliver.db."""

    @property
    def storage(self) -> LogStorage:
        """Where the log of this folder lives."""
        return open_storage(self.log or self.path)

    def plan_path(self, name: str) -> Path:
        """A plan or snapshot as a file of this machine, which need not have the folder."""
        return self.storage.path(f"plans/{name}") if self.log else self.plans / name

    @property
    def plans(self) -> Path:
        return self.path / "plans"

    @property
    def lists(self) -> Path:
        return self.path / "lists"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def sources(self) -> Path:
        return self.path / "sources"

    @property
    def tables(self) -> Path:
        return self.path / "tables"

    @property
    def messages(self) -> Path:
        return self.path / "messages"

    @property
    def operators(self) -> Path:
        return self.path / "operators.json"

    @property
    def feed_costs(self) -> Path:
        return self.path / "feed-costs.json"

    @property
    def heartbeat(self) -> Path:
        return self.path / "status.json"

    @property
    def delivery_database(self) -> str:
        return self.state or str(self.path / DELIVERIES)

    @property
    def has_deliveries(self) -> bool:
        """Whether a run has recorded deliveries, here or in another database."""
        return bool(self.state) or (self.path / DELIVERIES).exists()

    def record_data_root(self, root: Path | None) -> None:
        """Keep which folder the run may read files from: for what is shown of rejected ones."""
        text = "" if root is None else f"{root.resolve()}\n"
        write_whole(self.path / DATA_ROOT, text.encode())

    def data_root(self) -> Path | None:
        """The folder that the last run was allowed to read files from."""
        text = _first_line(self.path / DATA_ROOT)
        return Path(text) if text else None

    def lock(self) -> FileLock:
        """Held by the one process that runs this folder; `StateTaken` for any other."""
        return FileLock(self.path / "run.lock", f"the folder '{self.path}'")

    def make(self) -> DataFolder:
        make_private_folder(self.path)
        for each in (self.plans, self.lists, self.checkpoints, self.sources):
            each.mkdir(parents=True, exist_ok=True)
        return self


def make_private_folder(path: Path) -> None:
    """A folder that only its owner can enter: it holds items, addresses and the state of
    subscribers. One that exists and is open to others is closed, if it is ours."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        with suppress(PermissionError):
            path.chmod(mode & ~0o077)


LOG_ADDRESS, STATE_ADDRESS, DATA_ROOT = "log.url", "state.url", "data.root"
DELIVERIES = "deliver.db"


def find_folder(path: Path, log: str = "") -> DataFolder:
    """The folder of a run for readers: its log is where the run has said, or at this address."""
    return DataFolder(
        path, _address(log) or _recorded(path, LOG_ADDRESS), _recorded(path, STATE_ADDRESS)
    )


def claim_folder(path: Path, log: str = "", *, state: str = "", record: bool = True) -> DataFolder:
    """The folder of a run for the run itself. What cannot work is refused at once. A folder has one
    log for ever: Spark's checkpoints in it say what is in the log. It has one delivery database for
    ever: another one would deliver everything again."""
    address, recorded = _address(log), _recorded(path, LOG_ADDRESS)
    has_own = (path / "log").is_dir()
    if address != recorded and (recorded or has_own):
        there = f"at '{recorded}': add --log {recorded}" if recorded else "in it: leave --log out"
        raise StateError(f"the log of the folder '{path}' is {there}, or start with a new folder")
    folder = DataFolder(path, address, checked_state(path, state))
    if address:
        probe(folder.storage, address)
    if not recorded:
        refuse_old_layout(DataFolder(path))
    if address and not recorded and record:
        write_whole(path / LOG_ADDRESS, f"{address}\n".encode())
    if folder.state != _recorded(path, STATE_ADDRESS) and record:
        # The URL may have a password in it.
        write_whole(path / STATE_ADDRESS, f"{folder.state}\n".encode(), mode=0o600)
    return folder


def checked_state(path: Path, state: str) -> str:
    """The URL of the delivery database of a folder: the recorded one, or this one if the folder has
    none yet, or if only the login differs. Empty for deliver.db."""
    recorded = _recorded(path, STATE_ADDRESS)
    if not state:
        return recorded
    if "://" not in state:
        state = str(Path(state).absolute())
    if recorded and _without_login(state) == _without_login(recorded):
        return state
    if recorded or (path / DELIVERIES).exists():
        there = f"in the database of '{path / STATE_ADDRESS}'" if recorded else "in its deliver.db"
        raise StateError(
            f"the deliveries of the folder '{path}' are recorded {there}; another database would "
            "deliver everything again: leave --state out, or start with a new folder"
        )
    return state


def _address(log: str) -> str:
    """The address in one form: executors run in other folders."""
    if log and not scheme_of(log):
        return f"file://{Path(log).absolute()}"
    return checked_log(log)


def _recorded(path: Path, name: str) -> str:
    return _first_line(path / name)


def _first_line(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def _without_login(url: str) -> str:
    """
    >>> _without_login("postgresql://me:secret@db:5432/headgate")
    'postgresql://db:5432/headgate'
    """
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}"


def refuse_old_layout(folder: DataFolder) -> None:
    """`StateError` for a folder of an earlier version, which has no log."""
    if folder.log or (folder.path / "log").is_dir():
        return
    former = ("store/*/day=*", "batches/*/*.json")
    if any(next(folder.path.glob(pattern), None) is not None for pattern in former):
        raise StateError(
            f"'{folder.path}' was written by an earlier version, which stored items in 'store/' "
            "and had no log; keep it for its files, and start with a new folder"
        )
