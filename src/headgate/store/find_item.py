"""An item by its id, wherever it lies in the store.

Ids are only unique within a source, and an item may have come twice (two copies of a folder put
together, say), so all of the store is asked: one column of it, and DuckDB leaves out the row groups
whose least and greatest id say that it is not there.
"""

from __future__ import annotations

from datetime import datetime

from headgate.store.read_store import StoreReader
from headgate.store.stored_rows import StoredRow, microseconds, places_in, read_rows


def find_item(
    reader: StoreReader, id_: str, *, source: str | None = None, since: datetime | None = None
) -> list[StoredRow]:
    """All rows with this id, of one source or of any, in the order in which they arrived."""
    question = (
        'SELECT epoch_us("@arrived") AS arrived, filename, file_row_number AS row FROM {rows} '
        'WHERE "@id" = $id AND ($source IS NULL OR "@source" = $source) '
        'AND epoch_us("@arrived") >= $since'
    )
    since_us = 0 if since is None else microseconds(since)
    parameters: dict[str, object] = {"id": id_, "source": source, "since": since_us}
    answers = reader.ask(question, reader.files(since=since), parameters)
    places = sorted(place for answer in answers for place in places_in(answer))
    return [row for _, row in read_rows(places, reader.damaged)]
