"""Items as columns: see store/columns.py, where those who read the store find it too."""

from headgate.store.columns import (
    ID,
    OWN,
    SOURCE,
    TIME,
    batch_of_items,
    group_of,
    item_columns,
    items_of_batch,
    utc,
)

__all__ = [
    "ID",
    "OWN",
    "SOURCE",
    "TIME",
    "batch_of_items",
    "group_of",
    "item_columns",
    "items_of_batch",
    "utc",
]
