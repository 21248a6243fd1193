"""The pipeline's sources as Spark Python data sources: feeds, files, Kafka.

    feeds_source.py   "feeds"             RSS, Atom and JSON Feed from the web
    files_source.py   "headgate_files"    JSON, CSV and Parquet events, table changes, XML documents
    kafka_source.py   "headgate_kafka"    JSON events of Kafka topics

All of them give rows of columns.py. Sources with the same schema and kind are one streaming query,
and which they are is in a list file (source_list.py) that may change while the query runs.
"""
