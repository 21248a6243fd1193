"""Questions to the files of the store, in SQL, by DuckDB.

    SELECT … FROM {rows} WHERE …        {rows}: @source @id @time @feeds @inner @arrived
                                                filename file_row_number

Files are asked some hundreds at a time, so that whoever has enough can stop, and whoever waits sees
how far it is. Only files of finished batches are read (store/finished.py). A file that has gone
meanwhile was forgotten, as it was old. A damaged one is found by halving, named in `damaged`, and
left out; the others still answer.

Only Headgate's own columns are asked for in SQL: DuckDB does not tell `Price` from `price`, and
items may have both. Attributes are read by stored_rows.py.

Law: every question is answered by the same rows, however the files are cut into parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb
import pyarrow as pa

from headgate.store.files import StoredFile, stored_files
from headgate.store.finished import finished
from headgate.store.folder import Folder
from headgate.store.stored_rows import first_line

FILES_AT_ONCE = 512
_ROWS = "read_parquet($files, hive_partitioning = false, filename = true, file_row_number = true)"
_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    # Nothing is fetched from anywhere: what is needed is built in.
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}

Parameters = Mapping[str, object]


class StoreReader:
    """For one thread."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.damaged: dict[Path, str] = {}
        """Files that could not be read, each with the reason."""
        self._connection = duckdb.connect(config=_SETTINGS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def files(self, *, since: datetime | None = None) -> list[StoredFile]:
        """The files of finished batches, the oldest first; `since` a day that is not over yet."""
        certain = finished(self.folder.batches)
        day = None if since is None else since.astimezone(UTC).date()
        return certain.only(stored_files(self.folder.store, since=day))

    def use(self, name: str, table: pa.Table) -> None:
        """Questions may look into this table too, by this name."""
        self._connection.register(name, table)

    def ask(
        self, question: str, files: Sequence[StoredFile], parameters: Parameters | None = None
    ) -> Iterator[pa.Table]:
        """The answers of some files after the other. What is asked must allow that."""
        for start in range(0, len(files), FILES_AT_ONCE):
            yield from self.ask_at_once(question, files[start : start + FILES_AT_ONCE], parameters)

    def ask_at_once(
        self, question: str, files: Sequence[StoredFile], parameters: Parameters | None = None
    ) -> Iterator[pa.Table]:
        """One answer, or several if a file has to be left out."""
        sound = [each for each in files if each.path not in self.damaged]
        if not sound:
            return
        try:
            names = [_literal(each.path) for each in sound]
            found = self._connection.sql(
                question.format(rows=_ROWS), params={**(parameters or {}), "files": names}
            )
            answer = found.to_arrow_table()
        except duckdb.Error as error:
            if len(sound) == 1:
                self._leave_out(sound[0].path, error)
                return
        else:
            yield answer
            return
        half = len(sound) // 2
        yield from self.ask_at_once(question, sound[:half], parameters)
        yield from self.ask_at_once(question, sound[half:], parameters)

    def _leave_out(self, path: Path, error: duckdb.Error) -> None:
        if path.exists():
            self.damaged[path] = first_line(error).replace(str(path), path.name)


def _literal(path: Path) -> str:
    """DuckDB takes names for patterns; this one has only itself to match."""
    return re.sub(r"[*?\[]", r"[\g<0>]", str(path))
