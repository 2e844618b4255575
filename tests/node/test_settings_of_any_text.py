"""No text of a setting that can be changed stops a node: it is refused, or the node runs on."""

from __future__ import annotations

import pytest

from kraft_wire.node.limits import server_limits
from kraft_wire.settings.broker import BROKER_KEYS
from kraft_wire.settings.definition import UpdateMode
from kraft_wire.settings.group import GROUP_KEYS
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.settings.topic import TOPIC_KEYS
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.wire.generated.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.broker.groups.node_door import NodeDoor

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
LISTENERS_OWN = ("max.connections", "max.connection.creation.rate", "ssl.keystore.location")
KEYS: dict[tuple[int, str], list[str]] = {
    (BROKER, ""): [
        *(name for name, key in BROKER_KEYS.items() if key.scope is not UpdateMode.READ_ONLY),
        *(f"listener.name.plaintext.{each}" for each in LISTENERS_OWN),
    ],
    (TOPIC, "t"): [*TOPIC_KEYS],
    (GROUP, "g"): [*GROUP_KEYS],
    (CLIENT_METRICS, "m"): ["interval.ms", "metrics", "match"],
}
NUMBERS = (
    "-9223372036854775808",
    "-1",
    "0",
    "1",
    "2147483647",
    "2147483648",
    "9" * 19,
    "9" * 5_000,
)
FRACTIONS = ("0.5", "1e9", "1.0e400", "nan", "inf")
DIGITS_OF_UNICODE = ("\N{SUPERSCRIPT TWO}", "\N{ARABIC-INDIC DIGIT THREE}")
TEXTS = (
    "",
    " ",
    ",",
    ",,",
    ":",
    "null",
    "{}",
    "a.b.C",
    "[",
    "(",
    "\0",
    "\N{GRINNING FACE}",
    "x" * 30_000,
)
NAMED = ("a:b,c:d", "PLAINTEXT://:0", "RULE:[", "RULE:[1:$1](.*)s/a/b/", "/nonexistent", "[::1]:3")
PAIRS = tuple(
    f"{left}:{right}"
    for left in ("127.0.0.1", "0")
    for right in ("-1", "9" * 19, "9" * 5_000, *DIGITS_OF_UNICODE)
)
ANYTHING = (*NUMBERS, *FRACTIONS, *DIGITS_OF_UNICODE, *TEXTS, *NAMED, *PAIRS)


def change(door: NodeDoor, place: tuple[int, str], key: str, value: str | None) -> int:
    """Set a key, or take it away; return the error."""
    kind, name = place
    config = AlterableConfig(name=key, config_operation=int(value is None), value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
    answer = door.send(IncrementalAlterConfigsRequest(resources=[resource]), 1).response
    door.advance(1)
    return int(answer.responses[0].error_code)


def node_with_a_topic() -> NodeDoor:
    door = NodeDoor(SimFileSystem())
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    assert door.send(CreateTopicsRequest(topics=[topic]), 7).response.topics[0].error_code == 0
    return door


@pytest.mark.parametrize("place", KEYS, ids=["broker", "topic", "group", "client metrics"])
def test_no_text_of_a_changed_setting_stops_a_node(place: tuple[int, str]) -> None:
    door, kept = node_with_a_topic(), 0
    for key in KEYS[place]:
        accepted = [each for each in ANYTHING if change(door, place, key, each) == 0]
        if accepted:
            assert change(door, place, key, accepted[-1]) == 0
            kept += 1
    assert kept > len(KEYS[place]) // 4, "the last ones are in force"
    door.stop()
    again = NodeDoor(door.fs, now_ms=door.now_ms)
    pools = {key for key in KEYS[place] if key.endswith(("threads", "fetchers"))}
    refused = {key for key in KEYS[place] if change(again, place, key, None)} - pools
    assert refused <= {"min.insync.replicas"}, "KIP-966: the cluster's value can only be replaced"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "127.0.0.1:5, 127.0.0.2: 6 ,[::1]:7",
            {"127.0.0.1": 5, "127.0.0.2": 6, "0:0:0:0:0:0:0:1": 7},
        ),
        ("127.0.0.1:\N{SUPERSCRIPT TWO},127.0.0.2:6", {"127.0.0.2": 6}),
        (f"127.0.0.1:{'9' * 5_000},127.0.0.2:6", {"127.0.0.2": 6}),
        ("localhost:5,127.0.0.1:-1,127.0.0.2", {}),
    ],
)
def test_what_is_no_number_of_connections_is_left_out(text: str, found: dict[str, int]) -> None:
    settings = NodeSettings({"max.connections.per.ip.overrides": text})
    assert server_limits(settings).connections_of_address == found


RATES = (
    5e-324,
    1e-300,
    0.5,
    1.0,
    1e19,
    2.0**63,
    1e308,
    *map(float, ("inf", "-inf", "nan", "0", "-1")),
)


@pytest.mark.parametrize(
    ("entity", "quota"),
    [
        ("client-id", "producer_byte_rate"),
        ("client-id", "consumer_byte_rate"),
        ("client-id", "request_percentage"),
        ("client-id", "controller_mutation_rate"),
        ("ip", "connection_creation_rate"),
    ],
)
def test_no_number_of_a_quota_stops_a_node(entity: str, quota: str) -> None:
    """From the least to those that are none: what is accepted bounds clients, and no more."""
    accepted = 0
    for rate in RATES:
        door = node_with_a_topic()
        of_all = [EntityData(entity_type=entity, entity_name=None)]
        entry = EntryData(entity=of_all, ops=[OpData(key=quota, value=rate)])
        answer = door.send(AlterClientQuotasRequest(entries=[entry]), 1).response
        accepted += answer.entries[0].error_code == 0
        for number in range(3):  # each by a connection that is not throttled yet
            topic = CreatableTopic(name=f"t{number}", num_partitions=2, replication_factor=1)
            connection = 10 * number + 100
            door.send(CreateTopicsRequest(topics=[topic]), 7, connection=connection)
            door.send(produced(), 9, connection=connection + 1)
            door.send(fetched(), 4, connection=connection + 2)
            door.advance(50)
        door.stop()
        NodeDoor(door.fs, now_ms=door.now_ms)
    assert accepted > 2


def produced() -> ProduceRequest:
    records = bytes(build_batch([Record(value=b"v" * 100, timestamp=1)]))
    data = TopicProduceData(
        name="t", partition_data=[PartitionProduceData(index=0, records=records)]
    )
    return ProduceRequest(acks=1, timeout_ms=10, topic_data=[data])


def fetched() -> FetchRequest:
    wanted = FetchPartition(partition=0, partition_max_bytes=1_000)
    return FetchRequest(topics=[FetchTopic(topic="t", partitions=[wanted])])
