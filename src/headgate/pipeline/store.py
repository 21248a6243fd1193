"""The store: see store/files.py, where those who read it find it too."""

from headgate.store.files import (
    ARRIVED,
    MATERIALISED,
    ROW_GROUP,
    ItemsWriter,
    StoredFile,
    path_of,
    read_files,
    remove_batch,
    remove_before,
    stored_files,
)

__all__ = [
    "ARRIVED",
    "MATERIALISED",
    "ROW_GROUP",
    "ItemsWriter",
    "StoredFile",
    "path_of",
    "read_files",
    "remove_batch",
    "remove_before",
    "stored_files",
]
