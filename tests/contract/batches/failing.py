"""Reads what is there and divides by zero."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.range(1 // 0)
