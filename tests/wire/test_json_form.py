"""Messages as JSON: each rule of Kafka's converters on its own; the corpus checks them all."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kraft_wire.model import FileSlice, Uuid
from kraft_wire.wire.generated.registry import message_class, message_table
from kraft_wire.wire.json_form import InvalidJson, Json, message_from_json, message_to_json
from kraft_wire.wire.message import Message, UnencodableMessage
from tests.golden.vectors import CORPUS, read_vectors, same_json

FETCH_4: dict[str, Json] = {
    "replicaId": -1,
    "maxWaitMs": 0,
    "minBytes": 0,
    "maxBytes": 2147483647,
    "isolationLevel": 0,
    "topics": [],
}
FETCH_12 = FETCH_4 | {
    "sessionId": 0,
    "sessionEpoch": -1,
    "forgottenTopicsData": [],
    "rackId": "",
}


def read(name: str, json: Json, version: int) -> Message:
    return message_from_json(message_table(name), json, version)


def quotas(value: Json) -> dict[str, Json]:
    operation: dict[str, Json] = {"key": "k", "value": value, "remove": False}
    return {"entries": [{"entity": [], "ops": [operation]}], "validateOnly": False}


def records(value: Json) -> dict[str, Json]:
    partition: dict[str, Json] = {"index": 0, "records": value}
    topic: dict[str, Json] = {"name": "t", "partitionData": [partition]}
    return {"transactionalId": None, "acks": 1, "timeoutMs": 5, "topicData": [topic]}


def test_fields_without_tag_are_always_present_and_tagged_ones_when_not_default() -> None:
    request = message_class("FetchRequest")()
    assert message_to_json(request, 4) == FETCH_4 | {"maxWaitMs": 0}
    assert message_to_json(request, 12) == FETCH_12
    tagged = read("FetchRequest", FETCH_12 | {"clusterId": "c"}, 12)
    assert message_to_json(tagged, 12) == FETCH_12 | {"clusterId": "c"}


def test_explicit_default_of_a_tagged_field_reads_as_the_default() -> None:
    explicit = read("FetchRequest", FETCH_12 | {"clusterId": None}, 12)
    assert explicit == read("FetchRequest", FETCH_12, 12)


def test_key_of_an_unknown_field_is_ignored_and_a_missing_one_is_named() -> None:
    read("FetchRequest", FETCH_4 | {"other": 1}, 4)
    without = {key: value for key, value in FETCH_4.items() if key != "topics"}
    with pytest.raises(InvalidJson, match="'topics' is mandatory in version 4"):
        read("FetchRequest", without, 4)


def test_field_that_the_version_lacks_is_read_and_refused_on_encoding_unless_ignorable() -> None:
    ignorable = read("FetchRequest", FETCH_4 | {"rackId": "r"}, 4)
    assert ignorable.encode(4) == read("FetchRequest", FETCH_4, 4).encode(4)
    wanted: dict[str, Json] = {"keyType": 0, "coordinatorKeys": []}
    refused = read("FindCoordinatorRequest", wanted | {"key": "g"}, 4)
    with pytest.raises(UnencodableMessage):
        refused.encode(4)
    with pytest.raises(UnencodableMessage):
        message_to_json(refused, 4)


def test_struct_that_the_version_lacks_is_refused_on_reading_as_apaches_reader_does() -> None:
    forgotten: Json = [{"topic": "t", "partitions": []}]
    with pytest.raises(InvalidJson, match="ForgottenTopic does not exist in version 4"):
        read("FetchRequest", FETCH_4 | {"forgottenTopicsData": forgotten}, 4)
    none: Json = []
    assert read("FetchRequest", FETCH_4 | {"forgottenTopicsData": none}, 4).encode(4)


@pytest.mark.parametrize(
    ("name", "version", "json", "path"),
    [
        ("FetchRequest", 3, FETCH_4, "FetchRequest"),
        ("FetchRequest", 4, None, "FetchRequest"),
        ("FetchRequest", 4, FETCH_4 | {"maxWaitMs": 1 << 31}, "maxWaitMs"),
        ("FetchRequest", 4, FETCH_4 | {"maxWaitMs": 1.0}, "maxWaitMs"),
        ("FetchRequest", 4, FETCH_4 | {"maxWaitMs": True}, "maxWaitMs"),
        ("FetchRequest", 4, FETCH_4 | {"maxWaitMs": None}, "maxWaitMs"),
        ("FetchRequest", 4, FETCH_4 | {"topics": {}}, "topics"),
        ("FetchRequest", 4, FETCH_4 | {"topics": [5]}, r"topics\[0\]"),
        ("FetchRequest", 12, FETCH_12 | {"rackId": 5}, "rackId"),
        ("AlterClientQuotasRequest", 0, quotas(1), r"entries\[0\].ops\[0\].value"),
        ("AlterClientQuotasRequest", 0, quotas("NaN"), r"entries\[0\].ops\[0\].value"),
        ("AlterClientQuotasRequest", 0, quotas(1.0) | {"validateOnly": 1}, "validateOnly"),
        ("ProduceRequest", 3, records("AA"), r"topicData\[0\].partitionData\[0\].records"),
        ("ProduceRequest", 3, records("-_=="), r"topicData\[0\].partitionData\[0\].records"),
        ("ProduceRequest", 3, records([]), r"topicData\[0\].partitionData\[0\].records"),
        ("TopicRecord", 0, {"name": "t", "topicId": "AAAA"}, "topicId"),
        ("TopicRecord", 0, {"name": "t", "topicId": "+/" + "A" * 20}, "topicId"),
        ("TopicRecord", 0, {"name": "t", "topicId": 5}, "topicId"),
    ],
)
def test_json_of_the_wrong_shape_is_refused_with_its_path(
    name: str, version: int, json: Json, path: str
) -> None:
    with pytest.raises(InvalidJson, match=path):
        read(name, json, version)


def test_bytes_are_standard_base64_and_uuids_url_safe() -> None:
    produce = read("ProduceRequest", records("+/8AAQ=="), 3)
    assert message_to_json(produce, 3) == records("+/8AAQ==")
    assert message_to_json(read("ProduceRequest", records(None), 3), 3) == records(None)
    json: dict[str, Json] = {"name": "t", "topicId": "emLPkFFwTh-KAOb8fNQt-w"}
    assert message_to_json(read("TopicRecord", json, 0), 0) == json


def test_records_that_lie_in_a_file_are_read_for_the_json() -> None:
    class Segment:
        def pread(self, size_bytes: int, position: int) -> bytes:
            return b"x" * size_bytes

        def fileno(self) -> int:
            return -1

    produce = read("ProduceRequest", records(None), 3)
    topics = vars_of(produce, "topic_data")
    topics[0].partition_data[0].records = FileSlice(Segment(), 0, 3)
    assert message_to_json(produce, 3) == records("eHh4")


def vars_of(message: Message, name: str) -> list[Any]:
    found = getattr(message, name)
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize(
    ("value", "json"),
    [
        (1.5, 1.5),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
    ],
)
def test_reals_that_json_has_no_number_for_are_spelled_as_jackson_does(
    value: float, json: Json
) -> None:
    request = read("AlterClientQuotasRequest", quotas(1.0), 0)
    vars_of(request, "entries")[0].ops[0].value = value
    assert message_to_json(request, 0) == quotas(json)


def test_sign_of_zero_survives() -> None:
    request = read("AlterClientQuotasRequest", quotas(-0.0), 0)
    assert same_json(message_to_json(request, 0), quotas(-0.0))


def test_nullable_struct_is_null_or_an_object() -> None:
    answer = message_class("ConsumerGroupHeartbeatResponse")()
    assert message_to_json(answer, 0)["assignment"] is None
    assert answer.encode(0)[-2:] == b"\xff\x00"


def test_uuid_fields_take_any_16_bytes() -> None:
    topic = message_class("TopicRecord")(name="t", topic_id=Uuid(bytes(range(16))))  # type: ignore[call-arg]  # its own
    assert message_to_json(topic, 0)["topicId"] == "AAECAwQFBgcICQoLDA0ODw"


@pytest.mark.parametrize("kind", ["metadata_record", "raft_record", "consumer_protocol"])
def test_corpus_messages_go_to_json_and_back(kind: str) -> None:
    for file in sorted((CORPUS / kind).glob("*.jsonl")):
        for vector in read_vectors(file):
            if vector.malformed:
                continue
            data = bytes.fromhex(vector.hex)
            message, _ = message_class(vector.name).decode(data, vector.version)
            assert same_json(message_to_json(message, vector.version), vector.json)
            if vector.canonical:
                again = read(vector.name, vector.json, vector.version)
                assert again.encode(vector.version) == data
