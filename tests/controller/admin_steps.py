"""Requests that administer topics and configurations: each right and wrong way to ask.

The same steps were sent to Apache Kafka (`record_admin_answers.py`, answers in
observed/admin_answers.jsonl) and are sent to our controller (`test_admin_answers.py`). They build
on each other: order matters. `$name` stands for the id that topic `name` got.
"""

from typing import Any, NamedTuple

Json = dict[str, Any]


class Step(NamedTuple):
    """One request: the schema's name without Request, the version, the JSON form of the body."""

    api: str
    version: int
    body: Json


def topic(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    assignments: list[list[int]] | None = None,
    configs: dict[str, str | None] | None = None,
    first: int = 0,
) -> Json:
    """One CreatableTopic."""
    return {
        "name": name,
        "numPartitions": partitions,
        "replicationFactor": replicas,
        "assignments": [
            {"partitionIndex": number, "brokerIds": brokers}
            for number, brokers in enumerate(assignments or [], first)
        ],
        "configs": [{"name": key, "value": value} for key, value in (configs or {}).items()],
    }


def create(*topics: Json, version: int = 7, validate_only: bool = False) -> Step:
    """A CreateTopics request."""
    body = {"topics": list(topics), "timeoutMs": 10_000, "validateOnly": validate_only}
    return Step("CreateTopics", version, body)


def delete(*names: str, version: int = 6) -> Step:
    """A DeleteTopics request: names, or ids with a leading `$`."""
    if version < 6:
        return Step("DeleteTopics", version, {"topicNames": list(names), "timeoutMs": 10_000})
    zero = "AAAAAAAAAAAAAAAAAAAAAA"
    topics = [
        {"name": None, "topicId": name}
        if name.startswith(("$", "!"))
        else {"name": name, "topicId": zero}
        for name in names
    ]
    return Step("DeleteTopics", version, {"topics": topics, "timeoutMs": 10_000})


def grow(
    *topics: tuple[str, int, list[list[int]] | None], version: int = 3, validate_only: bool = False
) -> Step:
    """A CreatePartitions request: name, new count, assignments of the new partitions."""
    body = {
        "topics": [
            {
                "name": name,
                "count": count,
                "assignments": None
                if assignments is None
                else [{"brokerIds": brokers} for brokers in assignments],
            }
            for name, count, assignments in topics
        ],
        "timeoutMs": 10_000,
        "validateOnly": validate_only,
    }
    return Step("CreatePartitions", version, body)


SET, DELETE, APPEND, SUBTRACT = range(4)


def alter(
    *resources: tuple[int, str, list[tuple[str, int, str | None]]],
    version: int = 1,
    validate_only: bool = False,
) -> Step:
    """An IncrementalAlterConfigs request: resource type, name, (key, operation, value)."""
    body = {
        "resources": [
            {
                "resourceType": kind,
                "resourceName": name,
                "configs": [
                    {"name": key, "configOperation": operation, "value": value}
                    for key, operation, value in changes
                ],
            }
            for kind, name, changes in resources
        ],
        "validateOnly": validate_only,
    }
    return Step("IncrementalAlterConfigs", version, body)


def replace_configs(
    *resources: tuple[int, str, dict[str, str | None]],
    version: int = 2,
    validate_only: bool = False,
) -> Step:
    """An AlterConfigs request: the whole of a resource's settings."""
    body = {
        "resources": [
            {
                "resourceType": kind,
                "resourceName": name,
                "configs": [{"name": key, "value": value} for key, value in values.items()],
            }
            for kind, name, values in resources
        ],
        "validateOnly": validate_only,
    }
    return Step("AlterConfigs", version, body)


def describe(
    *resources: tuple[int, str, list[str] | None],
    version: int = 4,
    synonyms: bool = False,
    documentation: bool = False,
) -> Step:
    """A DescribeConfigs request: resource type, name, keys or all."""
    body: Json = {
        "resources": [
            {"resourceType": kind, "resourceName": name, "configurationKeys": keys}
            for kind, name, keys in resources
        ],
        "includeSynonyms": synonyms,
    }
    if version >= 3:
        body["includeDocumentation"] = documentation
    return Step("DescribeConfigs", version, body)


def list_resources(*types: int, version: int = 1) -> Step:
    """A ListConfigResources request."""
    return Step("ListConfigResources", version, {"resourceTypes": list(types)} if version else {})


LONG_LIST = ",".join(f"{number}:1" for number in range(4_000))
LONGER_LIST = ",".join(f"{number}:1" for number in range(2_000, 6_000))
"""Each fits into a string of the protocol, both together do not."""

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32

STEPS = [
    # creation
    create(topic("plain")),
    create(topic("plain")),
    create(topic("defaults", -1, -1)),
    create(topic("dry", 3), validate_only=True),
    create(topic("old", 2), version=2),
    create(topic("old4", -1, -1), version=4),
    create(topic("old5", 2, configs={"retention.ms": "1000"}), version=5),
    create(topic("many", 200)),
    create(topic("twice"), topic("twice"), topic("once")),
    create(topic("")),
    create(topic(".")),
    create(topic("..")),
    create(topic("a" * 249)),
    create(topic("a" * 250)),
    create(topic("with space")),
    create(topic("slash/name")),
    create(topic("col.lide")),
    create(topic("col_lide")),
    create(topic("pair.one"), topic("pair_one")),
    create(topic("__cluster_metadata")),
    create(topic("zero", 0)),
    create(topic("minus", -2)),
    create(topic("rf0", 1, 0)),
    create(topic("rf-2", 1, -2)),
    create(topic("rf3", 1, 3)),
    create(topic("huge", 2_000_000)),
    # manual assignment
    create(topic("hand", -1, -1, [[1], [1]])),
    create(topic("hand1", 2, -1, [[1], [1]])),
    create(topic("hand2", -1, 1, [[1], [1]])),
    create(topic("hand3", -1, -1, [[1], []])),
    create(topic("hand4", -1, -1, [[1, 1]])),
    create(topic("hand5", -1, -1, [[9]])),
    create(topic("hand6", -1, -1, [[1], [1]], first=1)),
    create(topic("hand7", -1, -1, [[1], [9, 1]])),
    # configuration at creation
    create(topic("set", configs={"cleanup.policy": "compact", "retention.ms": "5"})),
    create(topic("bad1", configs={"no.such.key": "1"})),
    create(topic("bad2", configs={"retention.ms": "often"})),
    create(topic("bad3", configs={"retention.ms": "-7"})),
    create(topic("bad4", configs={"cleanup.policy": "shred"})),
    create(topic("bad5", configs={"retention.ms": None})),
    create(topic("bad6", configs={"segment.bytes": "1024"})),
    create(topic("bad7", configs={"remote.storage.enable": "true"})),
    create(topic("bad8", configs={"min.insync.replicas": "0"})),
    create(topic("bad9", configs={"max.compaction.lag.ms": "5", "min.compaction.lag.ms": "9"})),
    create(topic("good", configs={"max.message.bytes": " 100 "})),
    create(topic("throttled", configs={"leader.replication.throttled.replicas": "0:1"})),
    create(topic("dry2", configs={"retention.ms": "soon"}), validate_only=True),
    create(topic("internal", configs={"internal.segment.bytes": "100000"})),
    create(),
    # more partitions
    grow(("plain", 3, None)),
    grow(("plain", 3, None)),
    grow(("plain", 2, None)),
    grow(("plain", -1, None)),
    grow(("missing", 3, None)),
    grow(("plain", 5, [[1], [1]])),
    grow(("plain", 7, [[1]])),
    grow(("plain", 6, [[9]])),
    grow(("plain", 6, [[1, 1]])),
    grow(("plain", 6, [[]])),
    grow(("plain", 6, [])),
    grow(("plain", 9, None), validate_only=True),
    grow(("plain", 9, None), ("plain", 9, None), ("old", 3, None)),
    grow(("old", 4, None), version=0),
    grow(("", 4, None)),
    # incremental changes of a topic
    alter((TOPIC, "plain", [("retention.ms", SET, "9")])),
    alter((TOPIC, "plain", [("retention.ms", SET, "9")])),
    alter((TOPIC, "plain", [("retention.ms", DELETE, None)])),
    alter((TOPIC, "plain", [("retention.ms", DELETE, None)])),
    alter((TOPIC, "plain", [("cleanup.policy", APPEND, "compact")])),
    alter((TOPIC, "plain", [("cleanup.policy", APPEND, "compact")])),
    alter((TOPIC, "plain", [("cleanup.policy", SUBTRACT, "delete")])),
    alter((TOPIC, "plain", [("cleanup.policy", SUBTRACT, "compact")])),
    alter((TOPIC, "plain", [("retention.ms", APPEND, "9")])),
    alter((TOPIC, "plain", [("retention.ms", SUBTRACT, "9")])),
    alter((TOPIC, "plain", [("retention.ms", SET, None)])),
    alter((TOPIC, "plain", [("cleanup.policy", APPEND, None)])),
    alter((TOPIC, "plain", [("no.such", SET, "9")])),
    alter((TOPIC, "plain", [("no.such", DELETE, None)])),
    alter((TOPIC, "plain", [("retention.ms", SET, "x")])),
    alter((TOPIC, "plain", [("segment.bytes", SET, "1")])),
    alter((TOPIC, "plain", [("retention.ms", SET, "1"), ("retention.ms", SET, "2")])),
    alter((TOPIC, "plain", [("retention.ms", SET, "1"), ("segment.bytes", SET, "1")])),
    alter((TOPIC, "missing", [("retention.ms", SET, "1")])),
    alter((TOPIC, "", [("retention.ms", SET, "1")])),
    alter((TOPIC, "bad name", [("retention.ms", SET, "1")])),
    alter((TOPIC, "plain", [("retention.ms", SET, "77")]), validate_only=True),
    alter((TOPIC, "plain", [])),
    alter((TOPIC, "plain", [("segment.ms", SET, "1")]), (TOPIC, "plain", [])),
    alter(
        (TOPIC, "plain", [("segment.ms", SET, "1000")]),
        (TOPIC, "old", [("segment.ms", SET, "0")]),
        (BROKER, "", [("log.cleaner.threads", SET, "2")]),
        version=0,
    ),
    alter((TOPIC, "plain", [("cleanup.policy", SET, "")])),
    alter((TOPIC, "plain", [("cleanup.policy", SET, "delete,delete")])),
    alter((TOPIC, "plain", [("min.insync.replicas", SET, "2")])),
    alter((TOPIC, "plain", [("compression.type", SET, "zstd")])),
    alter((TOPIC, "plain", [("compression.type", SET, "ZSTD")])),
    alter((TOPIC, "plain", [("preallocate", SET, "maybe")])),
    alter((TOPIC, "plain", [("min.cleanable.dirty.ratio", SET, "1.5")])),
    alter((TOPIC, "plain", [("leader.replication.throttled.replicas", APPEND, LONG_LIST)])),
    alter((TOPIC, "plain", [("leader.replication.throttled.replicas", APPEND, LONGER_LIST)])),
    alter((TOPIC, "plain", [("leader.replication.throttled.replicas", SUBTRACT, LONG_LIST)])),
    alter((TOPIC, "plain", [("leader.replication.throttled.replicas", DELETE, None)])),
    # incremental changes of a broker
    alter((BROKER, "1", [("log.cleaner.threads", SET, "2")])),
    alter((BROKER, "", [("log.retention.ms", SET, "3600000")])),
    alter((BROKER, "9", [("log.cleaner.threads", SET, "2")])),
    alter((BROKER, "x", [("log.cleaner.threads", SET, "2")])),
    alter((BROKER, "-1", [("log.cleaner.threads", SET, "2")])),
    alter((BROKER, "1", [("num.partitions", SET, "2")])),
    alter((BROKER, "", [("listeners", SET, "PLAINTEXT://:1")])),
    alter((BROKER, "", [("log.cleaner.threads", SET, "-2")])),
    alter((BROKER, "", [("unknown.key.of.mine", SET, "5")])),
    alter((BROKER, "", [("unknown.key.of.mine", DELETE, None)])),
    alter((BROKER, "", [("leader.replication.throttled.rate", SET, "1000")])),
    alter((BROKER, "1", [("log.cleaner.threads", DELETE, None)])),
    alter((BROKER, "", [("log.cleaner.threads", DELETE, None)])),
    alter((BROKER, "1", [("max.connections.per.ip", SET, "many")])),
    alter((BROKER, "", [("message.max.bytes", SET, "2000000")])),
    # other kinds of resources
    alter((METRICS, "mine", [("metrics", SET, "*"), ("interval.ms", SET, "1000")])),
    alter((METRICS, "mine", [("interval.ms", SET, "1")])),
    alter((METRICS, "mine", [("match", SET, "wrong")])),
    alter((METRICS, "", [("interval.ms", SET, "1000")])),
    alter((GROUP, "g", [("consumer.session.timeout.ms", SET, "50000")])),
    alter((GROUP, "g", [("consumer.session.timeout.ms", SET, "1")])),
    alter((GROUP, "g", [("no.such", SET, "1")])),
    alter((GROUP, "", [("consumer.session.timeout.ms", SET, "50000")])),
    alter((1, "x", [("a", SET, "1")])),
    alter((99, "x", [("a", SET, "1")])),
    # what is in force now
    describe((TOPIC, "plain", None)),
    describe((TOPIC, "plain", None), synonyms=True, documentation=True),
    describe((TOPIC, "old5", ["retention.ms", "no.such"]), synonyms=True),
    describe((TOPIC, "internal", ["internal.segment.bytes"]), synonyms=True, version=1),
    describe((TOPIC, "plain", []), version=3),
    describe((TOPIC, "missing", None)),
    describe((TOPIC, "", None)),
    describe((TOPIC, "bad name", None)),
    describe((BROKER, "1", None), synonyms=True),
    describe((BROKER, "", None), synonyms=True),
    describe((BROKER, "1", ["log.retention.ms", "log.dirs"]), version=1),
    describe((BROKER, "1", ["log.cleaner.threads", "num.io.threads"]), synonyms=True, version=2),
    describe((BROKER, "9", None)),
    describe((BROKER, "x", None)),
    describe((GROUP, "g", None), synonyms=True),
    describe((GROUP, "none", None)),
    describe((GROUP, "", None)),
    describe((METRICS, "mine", None), synonyms=True),
    describe((METRICS, "none", None)),
    describe((METRICS, "", None)),
    describe((LOGGER, "9", None)),
    describe((LOGGER, "", None)),
    describe((1, "x", None)),
    describe((TOPIC, "plain", ["retention.ms"]), (BROKER, "1", ["num.partitions"])),
    describe((TOPIC, "plain", ["retention.ms"]), (TOPIC, "plain", ["retention.ms"])),
    list_resources(),
    list_resources(TOPIC),
    list_resources(BROKER),
    list_resources(LOGGER),
    list_resources(METRICS, GROUP),
    list_resources(99),
    list_resources(version=0),
    # whole replacement
    replace_configs((TOPIC, "plain", {"retention.ms": "11", "segment.ms": "12"})),
    replace_configs((TOPIC, "plain", {"retention.ms": "13"})),
    replace_configs((TOPIC, "plain", {})),
    replace_configs((TOPIC, "plain", {"retention.ms": None})),
    replace_configs((TOPIC, "plain", {"retention.ms": "no"})),
    replace_configs((TOPIC, "missing", {"retention.ms": "1"})),
    replace_configs((TOPIC, "plain", {"a": "b"}), version=0),
    replace_configs((BROKER, "1", {"log.cleaner.threads": "1"}), version=1),
    replace_configs((BROKER, "1", {}), validate_only=True),
    # deletion
    delete("old"),
    delete("old"),
    delete("$plain"),
    delete("$plain"),
    delete("!AAAAAAAAAAAAAAAAAAAAAQ"),
    delete("!AAAAAAAAAAAAAAAAAAAAAA"),
    delete("old4", "old4", "old5"),
    delete("", "with space"),
    delete("many", "missing", version=1),
    delete("defaults", version=5),
    delete("__cluster_metadata"),
    create(topic("col_lide")),
    delete("col.lide"),
    create(topic("col_lide")),
    create(topic("plain")),
]
