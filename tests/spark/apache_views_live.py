"""`records` of directories beside what Spark's own Kafka connector reads of the nodes over them.

The nodes are started again, and nothing writes to them. Each partition is read in its leader's
directory, and once more through all directories at once, where the view chooses the replica; of a
compacted topic replicas differ in what is compacted so far, so that only the leader's counts.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import reduce
from pathlib import Path

from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession

from tests.apache.node import ApacheNode
from tests.apache.three_nodes import ThreeNodes
from tests.spark.apache_dirs import COMPACTED, topics, wait_for
from tests.spark.apache_views_compare import LEVELS, Compared, first_group
from tests.spark.apache_views_digests import Digests, digests, first_difference, rows_of

READINGS = 2 * len(LEVELS)
_STILL = {"log.cleaner.enable": "false", "auto.leader.rebalance.enable": "false"}
"""So that no log changes and no leader moves while both sides read."""

_TUNED = {"kafka.max.poll.records": "20000"}
_LOG = ("topic", "partition")
_LISTED_SECONDS_MAX = 60


@contextmanager
def started_again(cluster: ThreeNodes) -> Iterator[None]:
    """Start stopped nodes over their directories, and stop them after."""
    for node in cluster.nodes.values():
        with node.properties_file.open("a") as properties:
            properties.writelines(f"{key}={value}\n" for key, value in _STILL.items())
    try:
        with ThreadPoolExecutor(len(cluster.nodes)) as pool:
            list(pool.map(ApacheNode.start, cluster.nodes.values()))
        wait_for(AdminClient({"bootstrap.servers": cluster.bootstrap}), 3, names())
        yield
    finally:
        cluster.stop()


def names() -> list[str]:
    """The topics that are compared."""
    return sorted(topics(0))


def compare_live(spark: SparkSession, cluster: ThreeNodes) -> Iterator[Compared]:
    """Yield a row for each isolation level and way to read the directories of running nodes."""
    leaders = _leaders(cluster)
    everywhere = {"path": ",".join(map(str, cluster.data))}
    plain = ",".join(name for name in names() if name != COMPACTED)
    for level in LEVELS:
        theirs = _connector(spark, cluster.bootstrap, level)
        told = digests(theirs, _LOG)
        own = [_files(spark, level, each) for each in leaders]
        yield _compared("leaders", level, reduce(DataFrame.unionAll, own), theirs, told)
        chosen = _files(spark, level, everywhere | {"topics": plain})
        rest = {name: each for name, each in told.items() if not name.startswith(f"{COMPACTED}-")}
        yield _compared("all", level, chosen, theirs, rest)


def _compared(node: str, level: str, own: DataFrame, theirs: DataFrame, told: Digests) -> Compared:
    begun = time.monotonic()
    found = digests(own, _LOG)
    seconds = time.monotonic() - begun
    difference = ""
    if (group := first_group(found, told)) is not None:
        sides = [rows_of(each, _LOG, "offset", group) for each in (own, theirs)]
        difference = f"{group}, offset {first_difference(*sides)}"
    ours, other = (sum(each.rows for each in side.values()) for side in (found, told))
    return Compared(node, f"records {level}, connector", ours, other, seconds, difference)


def _connector(spark: SparkSession, bootstrap: str, level: str) -> DataFrame:
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": ",".join(names()),
        "startingOffsets": "earliest",
        "includeHeaders": "true",
        "kafka.isolation.level": level,
    }
    return spark.read.format("kafka").options(**options, **_TUNED).load()


def _files(spark: SparkSession, level: str, where: Mapping[str, str]) -> DataFrame:
    options = {"includeHeaders": "true", "isolationLevel": level}
    return spark.read.format("kraftlog").options(**options, **where).load()


def _leaders(cluster: ThreeNodes) -> list[dict[str, str]]:
    """Return for each node that leads something what of its directory is to be read."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    listed = admin.list_topics(timeout=_LISTED_SECONDS_MAX).topics
    led: dict[Path, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for name in names():
        for number, partition in sorted(listed[name].partitions.items()):
            led[cluster.nodes[partition.leader].data][name].append(number)
    return [{"path": str(path), "assign": json.dumps(parts)} for path, parts in led.items()]
