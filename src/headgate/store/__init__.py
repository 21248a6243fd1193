"""What a run keeps on disk: the log of its items with their feeds, atomic files, SQLite files.

The pipeline writes the log, the commands, the API and the jobs read it; merging and trimming are
called by the run. Entry points: `LogFileWriter` and `Sequencer` for writers, `LogView`, `tail`,
`Follower`, `find_item` and `stats` for readers, `FileRange` for jobs.

    data_folder    the folder of a run: what lies where
    whole_files    atomic files; the writer of Parquet files
    file_lock      a lock that one process holds
    database       a SQLite file with one writer and durable transactions

The log (docs/design/2026-11-17-log.md):

    log            entries in one order: the sequencer that appends them, and readers
    log_state      entries, the state that they give, and both as JSON
    log_storage    where a log lives; create if absent; a folder
    open_storage   the storage at an address; what cannot work is refused
    object_storage a log at a URL: S3, Google Cloud Storage, Azure
    object_cache   copies of a URL's objects on this machine
    log_writer     a file of items and its segment, written together
    segment        the index of a file of items: feeds, join inputs, sources, identities
    postings       for each key the rows that have it, as differences
    log_index      a feed since a position, its last items, the feeds of an item
    log_items      the items at places of the log
    log_merge      small files into large ones
    log_upkeep     merging, retention, removal of dead files

Reading it:

    log_view       questions that survive merging, trimming and damaged files
    tail           the last items of a feed or source, and those that arrive from now on
    find_item      all rows with an id; the row at a position
    stats          counts by source, day and feed
    recent_counts  counts of some feeds and sources: in all, of the last day and hour
    source_activity  items of all sources by stretch of time, and their last arrivals
    file_ranges    parts of files by positions, for jobs in other processes
"""
