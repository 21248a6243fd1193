"""Batch jobs: backtests and statistics over the store, and feed networks over files of sources.

A job is a function from a part of the files to a few rows. It runs on Spark's workers or, where
there is little to read, in this process with the same code. Entry points: `job.choose_runner`,
`backtest.Backtester`, `measure.Measurer`, `run_network.NetworkRun`, and
`embedding_job.rewrite_on_spark`.

In reading order:

    job                what a job is, how files are split into parts, and where a job runs
    stored_batches     the rows of stored files that a job reads, from many small files at once

    backtest_query     plans the feed of a backtest, and replays its joins
    backtest_job       one part of a backtest: some files through the match stage
    backtest           which items a feed would have had in the past
    compare            whether two feeds would have had the same items, or the first that differs
    measure            how often each atom is true, and how many items each source has

Feeds that are computed from other feeds, over the files of sources ([Delta]):

    compile_network    a planned configuration as level programs, in files that tasks map
    level_files        the format of these files
    network_job        one task: some files of a source through all levels
    network_output     input and output files: parts of sources, and tuples as Parquet
    run_network        a whole run, and its report
    embedding_job      which views can be computed from which, by ranges of views on Spark
"""
