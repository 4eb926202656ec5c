"""Sums orders by country, counts a join of two ten-million-row ranges, and tells what it found around itself."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from prices import with_tax
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

source, target = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
orders = spark.read.csv(source, header=True, inferSchema=True)
totals = orders.groupBy("country").sum("amount").withColumnRenamed("sum(amount)", "total")
totals.coalesce(1).write.mode("overwrite").json(target)

left = spark.range(1, 10_000_001).select(col("id").alias("a"))
right = spark.range(1, 10_000_001).select(col("id").alias("b"))
joined = left.join(right, col("a") == col("b")).count()


def seen(_: int) -> tuple[str, int]:
    """Return what an executor finds in its environment."""
    command = shutil.which("nvidia-smi")
    listed = subprocess.run([command, "-L"], capture_output=True, text=True, check=True).stdout if command else ""
    return os.environ.get("COLOUR", ""), len(listed.splitlines())


found = spark.sparkContext.range(0, 2, 1, 2).map(seen).collect()
facts = {
    "joined": joined,
    "with_tax": with_tax(100),
    "rate": Path("rate.txt").read_text().strip(),
    "packed": Path("kit", "packed.txt").read_text().strip(),
    "executors": found,
    "driver": [os.environ.get("SHADE", ""), shutil.which("nvidia-smi") or ""],
    "partitions": spark.conf.get("spark.sql.shuffle.partitions"),
    "own": spark.conf.get("spark.acme.own", "none"),
}
sys.stdout.write(f"FACTS {json.dumps(facts)}\n")
