"""The streaming sources of the pipeline, as Spark Python data sources.

A source turns web feeds, files or Kafka topics into rows of items (match/item_columns.py). Sources
of the same kind and schema are read by one streaming query; their names and paths are in a list
file (acquire/source_list.py), which may change while the query runs. Offsets are replayable: a
range of offsets that is read again gives the same rows. Entry points: the four DataSource classes,
which queries.py and table_join_query.py register with Spark.

In reading order:

    source_format          what all sources share: options, columns, partitions of equal size
    feeds_source           "feeds": RSS, Atom and JSON Feed from the web
    files_source           "headgate_files": JSON, CSV, Parquet and XML files, table changes
    kafka_source           "headgate_kafka": JSON messages of Kafka topics
    kafka_topics           topics, their messages, and the offsets of a Kafka query
    change_batch_source    "headgate_lots": change batches, cut into pieces for the table joins
"""
