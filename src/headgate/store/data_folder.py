"""The folder of a run: everything that must survive it.

log/          the entries of the log: what exists, in one order (log.py)      ┐ or at the address
data/         items as Parquet, and beside each file its segment (log_writer.py) ┘ in log.url
log.url       where the log is, if it is not here
plans/        source plans and snapshots, named by their content; copies at log.url for executors
lists/        which sources each group has at the moment
checkpoints/  Spark's own record of each query
sources/      state of the sources: fetched bodies, seen entries, rejected input
tables/       the next batches of table changes for table joins, and their progress
messages/     messages of table joins for clients and relays, as Parquet by day
operators.json  measured cost and selectivity of operators
run.lock      held by the process that runs the folder
deliver.db    cursors of delivery, and what differs from them (deliver/delivery_tables.py)
"""

from __future__ import annotations

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
    def deliveries(self) -> Path:
        return self.path / "deliver.db"

    def lock(self) -> FileLock:
        """Held by the one process that runs this folder; `StateTaken` for any other."""
        return FileLock(self.path / "run.lock", f"the folder '{self.path}'")

    def make(self) -> DataFolder:
        for each in (self.plans, self.lists, self.checkpoints, self.sources):
            each.mkdir(parents=True, exist_ok=True)
        return self


LOG_ADDRESS = "log.url"


def find_folder(path: Path, log: str = "") -> DataFolder:
    """The folder of a run for readers: its log is where the run has said, or at this address."""
    return DataFolder(path, _address(log) or _recorded(path))


def claim_folder(path: Path, log: str = "", *, record: bool = True) -> DataFolder:
    """The folder of a run for the run itself. What cannot work is refused at once. A folder has one
    log for ever: Spark's checkpoints in it say what is in the log."""
    address, recorded = _address(log), _recorded(path)
    has_own = (path / "log").is_dir()
    if address != recorded and (recorded or has_own):
        there = f"at '{recorded}': add --log {recorded}" if recorded else "in it: leave --log out"
        raise StateError(f"the log of the folder '{path}' is {there}, or start with a new folder")
    folder = DataFolder(path, address)
    if address:
        probe(folder.storage, address)
    if not recorded:
        refuse_old_layout(DataFolder(path))
    if address and not recorded and record:
        write_whole(path / LOG_ADDRESS, f"{address}\n".encode())
    return folder


def _address(log: str) -> str:
    """The address in one form: executors run in other folders."""
    if log and not scheme_of(log):
        return f"file://{Path(log).absolute()}"
    return checked_log(log)


def _recorded(path: Path) -> str:
    try:
        return (path / LOG_ADDRESS).read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""


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
