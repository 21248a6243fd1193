"""What a run keeps on disk: items with their feeds as Parquet files, atomic files, SQLite files.

The pipeline writes the store, the commands and the API read it; retention and merging are called by
the run. Entry points: `WholeParquet` and `item_files.path_of` for writers, `StoreReader`, `tail`,
`Follower`, `find_item` and `stats` for readers.

    data_folder    the folder of a run: what lies where
    whole_files    atomic files; the writer of Parquet files
    database       a SQLite file with one writer and durable transactions
    item_files     the files of the store by group, day and batch; which batches are finished
    maintenance    merging of small files, removal of old days
    read_store     SQL over the files, and the rows that it finds
    tail           the last items of a feed or source, and those that arrive from now on
    stats          counts by source, day and feed

The log, which will replace the store (docs/design/2026-11-17-log.md):

    log            entries in one order, the sequencer that appends them, the state that they give
    log_storage    where a log lives; create if absent
    segment        the index of a file of items: feeds, join inputs, sources, identities
    postings       for each key the rows that have it, as differences
    log_index      a feed since a position, its last items, the feeds of an item
    log_merge      small files into large ones
"""
