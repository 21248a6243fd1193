"""The streaming sources of the pipeline: Python data sources for Spark, and its Kafka connector.

A source turns web feeds, files, posted events or Kafka topics into rows of items
(match/item_columns.py). Sources of the same kind and schema are read by one streaming query; their
names and paths are in a list file (acquire/source_list.py), which may change while the query runs.
Offsets are replayable: a range of offsets that is read again gives the same rows. Entry points: the
DataSource classes, which queries.py and table_join_query.py register with Spark, and KafkaTopics,
which queries.py asks for the queries of Kafka topics.

In reading order:

    source_format          what all sources share: options, columns, partitions of equal size
    feeds_source           "feeds": RSS, Atom and JSON Feed from the web
    acquisition            what fetches these, in the process that plans their offsets
    files_source           "headgate_files": JSON, CSV, Parquet and XML files, table changes
    posted_source          "headgate_post": events that were posted to the spool of the run
    kafka_source           the queries of Kafka topics, by Spark's connector; what is lost
    kafka_topics           topics, their identity, and what the brokers say about them
    kafka_rows             messages as rows of items, in the tasks
    kafka_values           the schema files of values that are no JSON
    kafka_fields           fields of such values as attributes
    kafka_avro             Avro: the schema, and reading of values by it
    kafka_avro_types       Avro types as functions that skip and read
    kafka_protobuf         Protobuf: the descriptor set, and reading of values by it
    change_batch_source    "headgate_lots": change batches, cut into pieces for the table joins
"""
