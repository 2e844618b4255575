"""Views over log directories: every batch header, the damaged ones, and replicas that differ."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()


@dp.temporary_view
def batches() -> DataFrame:
    """The header of every batch of every replica."""
    return (
        spark.read.format("kraftlog")
        .option("view", "batches")
        .option("onCorrupt", "report")
        .load(spark.conf.get("spark.kraftwire.logs"))
    )


@dp.materialized_view
def damaged() -> DataFrame:
    """Bytes that are no whole batch, and batches whose checksum is wrong."""
    return spark.read.table("batches").where("status <> 'ok'")


@dp.materialized_view
def differing() -> DataFrame:
    """Batches of one offset and leader epoch that are not the same on all nodes."""
    named = f.sort_array(f.collect_list(f.struct("node", "crc", "sizeInBytes"))).alias("replicas")
    return (
        spark.read.table("batches")
        .where("status = 'ok'")
        .groupBy("topic", "partition", "baseOffset", "leaderEpoch")
        .agg(f.count_distinct("crc", "sizeInBytes").alias("versions"), named)
        .where("versions > 1")
    )
