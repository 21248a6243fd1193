"""Run in a process of its own with a Spark master or "connect": what `hg.spark.match` gives there.

It prints one JSON object. It runs in an empty folder, and executors of a local cluster have folders
of their own, so nothing but the artifacts reaches them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import headgate as hg
from headgate.pipeline.session import start_session

TICKETS = [(80.0, "Rome", [1]), (120.0, "Paris", [2]), (None, None, None)] * 40
COLUMNS = "price double, `to` string, extra array<int>"
FILTERS = {"cheap": "price < 100", "paris": "to contains 'Paris'", "all": "true"}


def session(master: str) -> SparkSession:
    if master != "connect":
        options = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
        return start_session(master, settings=options)
    builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
    return builder.getOrCreate()


def shown(frame: DataFrame, column: str = "matches") -> list[list[object]]:
    return sorted([str(row.to), sorted(row[column]), str(row.extra)] for row in frame.collect())


def refused(frame: DataFrame, matcher: object, column: str = "matches") -> str:
    try:
        hg.spark.match(frame, matcher, column)
    except hg.HeadgateError as error:
        return str(error).split("\n", maxsplit=1)[0]
    return ""


def streamed(spark: SparkSession, frame: DataFrame, folder: Path) -> list[list[object]]:
    """What a streaming query over the same rows gives, as files are read and written."""
    frame.write.parquet(str(folder / "in"))
    stream = spark.readStream.schema(frame.schema).parquet(str(folder / "in"))
    matched = hg.spark.match(stream, FILTERS)
    writer = matched.writeStream.format("parquet").option("path", str(folder / "out"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination(120)
    query.stop()
    return shown(spark.read.parquet(str(folder / "out")))


def main(master: str) -> None:
    spark = session(master)
    frame = spark.createDataFrame(TICKETS, COLUMNS).repartition(4)
    matcher = hg.Matcher({"price": "float", "to": "text", "gone": "int"})
    matcher.add_many({"none": "gone = 1", "cheap": "price < 100"})
    by_number = hg.spark.match(frame, matcher, "found", ids=True)
    matcher.remove("cheap")
    told = {
        "batch": shown(hg.spark.match(frame, FILTERS)),
        "numbers": shown(by_number, "found"),
        "later": shown(hg.spark.match(frame, matcher)),
        "types": [field.dataType.simpleString() for field in by_number.schema.fields],
        "refused": [
            refused(frame, FILTERS, "Extra"),
            refused(frame.select("extra"), matcher),
            refused(frame, hg.Matcher({"to": "int"})),
            refused(frame, {"x": "extra = 1"}),
        ],
    }
    if not master.startswith("local-cluster"):  # its executors write where the driver cannot look
        told["stream"] = streamed(spark, frame, Path.cwd())
    print(json.dumps(told))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
