"""A Spark program: counts what it makes, waits as told, and fails if it is asked to."""

from __future__ import annotations

import sys
import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
count = spark.range(1000).filter("id % 3 = 0").count()
said = dict(word.split("=", 1) for word in sys.argv[1:])
time.sleep(float(said.get("seconds", "0")))
if "fail" in said:
    raise ValueError(said["fail"])
sys.stdout.write(f"counted {count}\n")
spark.stop()
