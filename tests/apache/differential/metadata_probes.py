"""Metadata 0 to 13 and DescribeTopicPartitions 0: topics by name and id, and those that are not."""

from typing import Any

from kraft_wire.model import Uuid
from kraft_wire.wire.generated.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from tests.apache.differential.probes import probe
from tests.apache.differential.side import STRANGER, Side

INVALID_NAMES = ("a b", "", ".", "..", "x" * 250, "a/b", "ü")
FIRST_FLAG_VERSION = 4


def metadata(
    side: Side, version: int, question: str, *topics: MetadataRequestTopic, **more: Any
) -> Any:
    """Ask for topics; none is created where the version can say so."""
    fields: dict[str, Any] = {"allow_auto_topic_creation": version < FIRST_FLAG_VERSION} | more
    return side.ask(MetadataRequest(topics=list(topics), **fields), version, question)


def named(name: str) -> MetadataRequestTopic:
    """A topic by its name."""
    return MetadataRequestTopic(name=name)


@probe(MetadataRequest)
def known_topics(side: Side, version: int) -> None:
    one, many = side.topic("md-one"), side.topic("md-many", 7)
    metadata(side, version, "one", named(one))
    metadata(side, version, "many", named(many))
    metadata(side, version, "both, twice", named(many), named(one), named(many))
    if version:
        metadata(side, version, "none")
    request = MetadataRequest(topics=None, allow_auto_topic_creation=version < FIRST_FLAG_VERSION)
    if version == 0:
        request.topics = []
    answer = side.prepare(request, version)
    mine = [topic for topic in answer.topics if topic.name in (one, many)]
    side.note(
        "all", sorted((topic.name, topic.error_code, len(topic.partitions)) for topic in mine)
    )


@probe(MetadataRequest)
def wrong_names(side: Side, version: int) -> None:
    known = side.topic("md-one")
    for name in INVALID_NAMES:
        metadata(side, version, f"{name[:9]!r}", named(name))
        metadata(side, version, f"{name[:9]!r} and one", named(known), named(name))
    for name in INVALID_NAMES[:2]:
        allowed = {"allow_auto_topic_creation": True}
        metadata(side, version, f"{name!r} to be created", named(name), **allowed)


@probe(MetadataRequest)
def unknown_topics(side: Side, version: int) -> None:
    if version >= FIRST_FLAG_VERSION:
        metadata(side, version, "not to be created", named(side.name(f"md-no-{version}")))
        metadata(side, version, "still not", named(side.name(f"md-no-{version}")))
    new = side.name(f"md-new-{version}")
    side.note("created", side.prepare(MetadataRequest(topics=[named(new)]), version).topics[0].name)
    side.topic_id(new)
    metadata(side, version, "it is there", named(new))


@probe(MetadataRequest, range(10, 14))
def topics_by_id(side: Side, version: int) -> None:
    known = side.topic("md-one")
    topic_id = side.topic_id(known)
    for question, asked in {
        "by id": MetadataRequestTopic(name=None, topic_id=topic_id),
        "by both": MetadataRequestTopic(name=known, topic_id=topic_id),
        "by contradicting": MetadataRequestTopic(name=known, topic_id=STRANGER),
        "by unknown id": MetadataRequestTopic(name=None, topic_id=STRANGER),
        "by nothing": MetadataRequestTopic(name=None, topic_id=Uuid(bytes(16))),
    }.items():
        metadata(side, version, question, asked)
        metadata(side, version, f"{question} and a name", named(known), asked)


@probe(MetadataRequest)
def operations(side: Side, version: int) -> None:
    known, unknown = side.topic("md-one"), side.name("md-unknown")
    for cluster in (False, True):
        for topics in (False, True):
            flags = {
                "include_cluster_authorized_operations": cluster,
                "include_topic_authorized_operations": topics,
            }
            asked = (
                [named(known)] if version < FIRST_FLAG_VERSION else [named(known), named(unknown)]
            )
            metadata(side, version, f"operations {cluster} {topics}", *asked, **flags)


@probe(DescribeTopicPartitionsRequest)
def described_topics(side: Side, version: int) -> None:
    one, many = side.topic("md-one"), side.topic("md-many", 7)

    def ask(question: str, *names: str, limit: int = 2_000, cursor: Cursor | None = None) -> None:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=cursor,
        )
        side.ask(request, version, question)

    ask("both", one, many)
    ask("unordered, twice", one, many, one)
    for limit in (-1, 0, 1, 3, 7, 8, 9):
        ask(f"limit {limit}", many, one, limit=limit)
    for name, index in ((many, 3), (many, 7), (many, -1), (one, 0), (one, 1), ("", 0), ("zzzz", 0)):
        ask(
            f"from {name} {index}", many, one, cursor=Cursor(topic_name=name, partition_index=index)
        )
    # An empty name makes 4.3.1 fail in itself.
    for name in (*filter(None, INVALID_NAMES), side.name("nowhere"), "__consumer_offsets_"):
        ask(f"{name[:9]!r}", name, one)
