"""One Spark session for all tests of a process: starting one takes seconds."""

from __future__ import annotations

from functools import lru_cache

from pyspark.sql import SparkSession

from headgate.pipeline.session import start_session


@lru_cache(maxsize=1)
def spark() -> SparkSession:
    # The quick compiler only: tests are short, and the better one doubles their start.
    options = "-XX:TieredStopAtLevel=1"
    settings = {
        "spark.driver.extraJavaOptions": options,
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
    }
    return start_session("local[2,3]", name="tests", settings=settings)
