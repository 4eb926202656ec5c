"""Summarise a day's bicycle rides by district and hour: the PySpark program of the DAG ``rides_by_district``.

Rides are CSV (``station,started,minutes``), stations too (``station,district``). Rides that have no station, an unknown
one, or no sensible duration are left out. Each output line is a JSON object with ``district``, ``hour``, ``rides`` and
``minutes``::

    spark-submit summarise_rides.py RIDES STATIONS OUTPUT
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

RIDES = "station STRING, started TIMESTAMP, minutes INT"
STATIONS = "station STRING, district STRING"
LONGEST_RIDE = 24 * 60


def main(rides_path: str, stations_path: str, output_path: str) -> None:
    """Read, join, sum up and write."""
    spark = SparkSession.builder.appName("rides by district").getOrCreate()
    # Hours are those of the data, wherever the cluster is.
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    rides = spark.read.csv(rides_path, schema=RIDES, header=True, mode="PERMISSIVE")
    stations = spark.read.csv(stations_path, schema=STATIONS, header=True)
    summary = (
        rides.where(f.col("minutes").between(1, LONGEST_RIDE) & f.col("started").isNotNull())
        .join(stations, "station")
        .groupBy("district", f.hour("started").alias("hour"))
        .agg(f.count("*").alias("rides"), f.sum("minutes").alias("minutes"))
        .orderBy("district", "hour")
    )
    summary.coalesce(1).write.mode("overwrite").json(output_path)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
