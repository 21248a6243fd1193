"""The program of a bucket of the window joins: `python -m headgate.pipeline.window_join_process`.

A task of the stage starts it (windows/bucket_process.py) with its settings and the number of the
process with which it ends. It puts together what the rooms below do not know of each other: the
log, the joins, and the form of items as JSON.

Arrow uses one thread: a bucket is the work of one core.
"""

from __future__ import annotations

import sys

import pyarrow as pa

from headgate.deliver.item_encoding import decode_annotations, json_of_item
from headgate.store.open_storage import open_storage
from headgate.windows.bucket_process import decode_settings, serve
from headgate.windows.join_bucket import JoinBucket
from headgate.windows.joined_writer import ItemJson

MODULE = "headgate.pipeline.window_join_process"


def main(arguments: list[str]) -> None:
    settings = decode_settings(arguments[0])
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    bucket = JoinBucket(
        open_storage(settings.root),
        settings.bucket,
        ItemJson(json_of_item, decode_annotations),
    )
    serve(settings, bucket.advance, parent=int(arguments[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
