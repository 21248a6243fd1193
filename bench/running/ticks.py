"""A source that has a few new items at every moment, each with the moment it was made at.

Item n is there from `began + n / rate` on, so nothing has to be written for it, and how old it is
when it lies in the store is known exactly.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from headgate.match.item_columns import item_columns
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.pipeline.sources.source_format import spark_columns

TICKS = Schema((Attribute("number", Type.INT),))
STATEMENTS = """
register stream Ticks from json 'ticks/*.json' (number int);
create feed Even from Ticks where number > 10;
"""


def ticks(session: SparkSession, *, rate: float, began_s: float) -> DataFrame:
    session.dataSource.register(Ticks)
    reader = session.readStream.format("ticks").option("rate", str(rate))
    return reader.option("began", repr(began_s)).load()


class Ticks(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ticks"

    def schema(self) -> object:
        return spark_columns(TICKS)

    def streamReader(self, schema: object) -> TicksReader:  # noqa: ARG002
        return TicksReader(float(self.options["rate"]), float(self.options["began"]))


class TicksReader(DataSourceStreamReader):
    def __init__(self, rate: float, began_s: float) -> None:
        self.rate, self.began_s = rate, began_s

    def initialOffset(self) -> dict[str, int]:
        return {"number": max(0, int((time.time() - self.began_s) * self.rate))}

    def latestOffset(self, *_: object) -> dict[str, int]:
        return {"number": max(0, int((time.time() - self.began_s) * self.rate))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition((start["number"], end["number"]))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        first, last = partition.value
        numbers = list(range(first, last))
        made = [datetime.fromtimestamp(self.began_s + (n + 1) / self.rate, UTC) for n in numbers]
        columns = [["Ticks"] * len(numbers), [str(n) for n in numbers], made, numbers]
        fields = item_columns(TICKS)
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)],
            schema=fields,
        )
