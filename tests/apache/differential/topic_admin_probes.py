"""CreateTopics 2 to 7, CreatePartitions 0 to 3, DeleteTopics 1 to 6, DeleteRecords 0 to 2.

More ways to be refused stand in `tests/controller/admin_steps.py`, each in one version; here the
kinds of answers are asked for in all of them.
"""

from typing import Any

from kraft_wire.model import Uuid
from kraft_wire.wire.generated.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraft_wire.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraft_wire.wire.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.apache.differential.probes import probe
from tests.apache.differential.side import STRANGER, Side

ADMIN: dict[str, Any] = {"timeout_ms": 20_000}
FIRST_BY_ID = 6
ZERO = Uuid(bytes(16))


def creatable(name: str, partitions: int = 1, replicas: int = 1, **configs: Any) -> CreatableTopic:
    """A topic to create; settings with underscores for dots."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def assigned(name: str, *brokers: list[int], first: int = 0, **counts: int) -> CreatableTopic:
    """A topic with its replicas placed by hand."""
    topic = creatable(name, counts.get("partitions", -1), counts.get("replicas", -1))
    topic.assignments = [
        CreatableReplicaAssignment(partition_index=number, broker_ids=ids)
        for number, ids in enumerate(brokers, first)
    ]
    return topic


@probe(CreateTopicsRequest)
def creations(side: Side, version: int) -> None:
    def ask(question: str, *topics: CreatableTopic, dry: bool = False) -> None:
        request = CreateTopicsRequest(topics=list(topics), validate_only=dry, timeout_ms=20_000)
        answer = side.prepare(request, version)
        for topic in answer.topics:
            if topic.topic_id != ZERO:
                side.learn(topic.name, topic.topic_id)
        side.note_message(question, answer, version)

    name = side.name(f"create-{version}")
    ask("one", creatable(name))
    ask("again", creatable(name))
    ask("again, only tried", creatable(name), dry=True)
    ask("by default", creatable(f"{name}-default", -1, -1))
    ask("only tried", creatable(f"{name}-dry", 3), dry=True)
    ask("with settings", creatable(f"{name}-set", 2, retention_ms="5", cleanup_policy="compact"))
    ask("two", creatable(f"{name}-x"), creatable(f"{name}-y", 5))
    ask("twice", creatable(f"{name}-z"), creatable(f"{name}-z"))
    ask("one bad", creatable(f"{name}-g"), creatable("a b"), creatable(f"{name}-h", 0))
    ask("nothing")
    for wrong in ("", ".", "..", "a/b", "x" * 250, "__cluster_metadata"):
        ask(f"name {wrong[:9]!r}", creatable(wrong))
    for partitions, replicas in ((0, 1), (-2, 1), (1, 0), (1, -2), (1, 3), (0, 0)):
        ask(f"{partitions} x {replicas}", creatable(f"{name}-n", partitions, replicas))
    ask("unknown setting", creatable(f"{name}-n", no_such="1"))
    ask("bad setting", creatable(f"{name}-n", retention_ms="soon"))
    ask("null setting", creatable(f"{name}-n", retention_ms=None))
    ask("by hand", assigned(f"{name}-hand", [1], [1]))
    ask("by hand and counted", assigned(f"{name}-n", [1], partitions=1))
    ask("by hand and replicated", assigned(f"{name}-n", [1], replicas=1))
    ask("no such broker", assigned(f"{name}-n", [7]))
    ask("no brokers", assigned(f"{name}-n", []))
    ask("a broker twice", assigned(f"{name}-n", [1, 1]))
    ask("a gap", assigned(f"{name}-n", [1], first=1))


@probe(CreatePartitionsRequest)
def growth(side: Side, version: int) -> None:
    name = side.topic(f"grow-{version}", 2)

    def grown(count: int, *brokers: list[int], which: str = name) -> CreatePartitionsTopic:
        places = [CreatePartitionsAssignment(broker_ids=ids) for ids in brokers]
        return CreatePartitionsTopic(name=which, count=count, assignments=places or None)

    def ask(question: str, *topics: CreatePartitionsTopic, dry: bool = False) -> None:
        request = CreatePartitionsRequest(topics=list(topics), validate_only=dry, timeout_ms=20_000)
        side.ask(request, version, question, hashed=True)

    ask("only tried", grown(3), dry=True)
    ask("to three", grown(3))
    for count in (3, 2, 0, -1):
        ask(f"to {count}", grown(count))
    ask("by hand", grown(4, [1]))
    ask("too many places", grown(5, [1], [1]))
    ask("too few places", grown(6, [1]))
    ask("no such broker", grown(5, [9]))
    ask("a broker twice", grown(5, [1, 1]))
    ask("no brokers", grown(5, []))
    ask("unknown", grown(5, which=side.name("nowhere")))
    ask("no name", grown(5, which=""))
    ask("twice", grown(5), grown(6))
    ask("one of two", grown(5), grown(5, which=side.name("nowhere")))
    ask("nothing")


@probe(DeleteTopicsRequest)
def topic_deletions(side: Side, version: int) -> None:
    names = [side.topic(f"delete-{version}-{number}") for number in range(4)]
    nowhere = side.name("nowhere")

    def ask(question: str, *asked: str | Uuid) -> None:
        if version < FIRST_BY_ID:
            request = DeleteTopicsRequest(topic_names=[str(name) for name in asked], **ADMIN)
        else:
            states = [
                DeleteTopicState(name=each)
                if isinstance(each, str)
                else DeleteTopicState(name=None, topic_id=each)
                for each in asked
            ]
            request = DeleteTopicsRequest(topics=states, **ADMIN)
        side.ask(request, version, question, hashed=True)

    ask("one", names[0])
    ask("again", names[0])
    ask("unknown", nowhere)
    ask("one and unknown", names[1], nowhere)
    ask("twice", names[2], names[2])
    ask("no name", "")
    ask("a wrong name", "a b")
    ask("nothing")
    if version >= FIRST_BY_ID:
        ask("by unknown id", STRANGER)
        ask("by no id", ZERO)
        ask("by id and by name", side.topic_id(names[3]), names[3])
        both = DeleteTopicState(name=names[3], topic_id=side.topic_id(names[3]))
        side.ask(DeleteTopicsRequest(topics=[both], **ADMIN), version, "by both")
        ask("by id twice", side.topic_id(names[3]), side.topic_id(names[3]))
        ask("by id", side.topic_id(names[3]))
        ask("by id again", side.topic_id(names[3]))


@probe(DeleteRecordsRequest)
def record_deletions(side: Side, version: int) -> None:
    name = side.filled(f"records-{version}")
    side.group("records")  # whose coordinator's topic is the internal one
    compacted = side.topic("records-compacted", cleanup_policy="compact")

    def ask(question: str, *asked: tuple[str, int, int]) -> None:
        topics = [
            DeleteRecordsTopic(
                name=topic, partitions=[DeleteRecordsPartition(partition_index=index, offset=at)]
            )
            for topic, index, at in asked
        ]
        side.ask(DeleteRecordsRequest(topics=topics, **ADMIN), version, question, hashed=True)

    for at in (5, 3, 5, 0, -2, 21, 20, -1):
        ask(f"to {at}", (name, 0, at))
    ask("partition 9", (name, 9, 0))
    ask("partition -1", (name, -1, 0))
    ask("unknown", (side.name("nowhere"), 0, 0))
    ask("compacted", (compacted, 0, 0))
    ask("internal", ("__consumer_offsets", 0, 0))
    ask("two", (name, 0, 20), (side.name("nowhere"), 0, 0))
    ask("nothing")
    ask("no name", ("", 0, 0))
