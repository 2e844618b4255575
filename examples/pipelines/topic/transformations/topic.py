"""One topic, every record once, and its records and bytes by the hour."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()


@dp.table
def records() -> DataFrame:
    """The topic's records, as a streaming table."""
    return (
        spark.readStream.format("kraftwire")
        .option("kafka.bootstrap.servers", spark.conf.get("spark.kraftwire.bootstrap"))
        .option("subscribe", spark.conf.get("spark.kraftwire.topic"))
        .option("startingOffsets", "earliest")
        .load()
    )


@dp.materialized_view
def by_hour() -> DataFrame:
    """How many records and bytes each partition got in each hour."""
    return (
        spark.read.table("records")
        .groupBy("topic", "partition", f.date_trunc("hour", "timestamp").alias("hour"))
        .agg(f.count("*").alias("records"), f.sum(f.length("value")).alias("bytes"))
    )
