"""Match a Spark DataFrame with 10,000 filters at once, and show some of it.

python match_tickets.py
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headgate as hg

CITIES = ["Oslo", "Rome", "Paris", "Porto"]
TICKETS = 10_000


def main() -> None:
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    cities = F.array(*map(F.lit, CITIES))
    tickets = spark.range(TICKETS).select(
        (F.col("id") % 997).alias("price"),
        F.element_at(cities, (F.col("id") % len(CITIES) + 1).cast("int")).alias("to"),
    )
    filters = {
        f"under {limit} to {city}": f"price < {limit} and to = '{city}'"
        for city in CITIES
        for limit in range(1, 2_501)
    }
    matched = hg.spark.match(tickets, filters)
    print(f"{len(filters):,} filters, {TICKETS:,} tickets")
    some = F.concat_ws(", ", F.slice("matches", 1, 2))
    matched.where("price = 996").select("price", "to", some.alias("matches")).limit(3).show(
        truncate=False
    )
    total = matched.select(F.sum(F.size("matches"))).first()
    print(f"matches in all: {total[0]:,}" if total else "no matches")


if __name__ == "__main__":
    main()
