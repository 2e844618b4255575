"""Topics over the wire with a broker of prepared answers: the requests, the wait, the refusals."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Self

import pytest

from kraft_wire.testing import admin as admin_module
from kraft_wire.testing.admin import RequestRefused, create_topic, delete_topics
from kraft_wire.testing.namespace import Namespace
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraft_wire.wire.message import Message

NO_LEADER, EXISTS, UNKNOWN, NOT_ALLOWED = 5, 36, 3, 29


class Broker:
    """Answers in the given order, and keeps what it was asked and where."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: Message) -> None:
        self.answers = list(answers)
        self.asked: list[object] = []
        self.now_s = 0.0
        monkeypatch.setattr(admin_module, "BrokerConnection", self.connect)
        clock = SimpleNamespace(monotonic=lambda: self.now_s, sleep=self.sleep)
        monkeypatch.setattr(admin_module, "time", clock)

    def connect(self, server: str, *, client_id: str) -> Self:
        self.asked.append((server, client_id))
        return self

    def sleep(self, seconds: float) -> None:
        assert seconds == 0.005
        self.now_s += 10

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.asked.append("closed")

    def send(self, request: Message, kind: type[Message]) -> Message:
        self.asked.append(request)
        answer = self.answers.pop(0)
        assert isinstance(answer, kind)
        return answer


def created(error_code: int = 0, message: str | None = None) -> CreateTopicsResponse:
    result: Any = CreatableTopicResult(name="t", error_code=error_code, error_message=message)
    return CreateTopicsResponse(topics=[result])


def described(*errors: int, topic_error: int = 0) -> MetadataResponse:
    """A topic whose partitions have these errors."""
    partitions: Any = [
        MetadataResponsePartition(partition_index=number, error_code=error)
        for number, error in enumerate(errors)
    ]
    topic: Any = MetadataResponseTopic(name="t", error_code=topic_error, partitions=partitions)
    return MetadataResponse(topics=[topic])


WANTED = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=False)
CLIENT = "kraft-wire-testing"


def test_topic_is_created_at_one_broker_and_awaited_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker(
        monkeypatch,
        created(),
        described(0, NO_LEADER),
        described(0, 0, topic_error=UNKNOWN),
        described(0),
        described(0, 0),
        described(0, 0),
    )
    create_topic(["a:1", "b:2"], "t", 2, 3, {"x": 1, "y": "z"})
    topic = CreatableTopic(
        name="t",
        num_partitions=2,
        replication_factor=3,
        configs=[
            CreatableTopicConfig(name="x", value="1"),
            CreatableTopicConfig(name="y", value="z"),
        ],
    )
    assert broker.asked == [
        ("a:1", CLIENT),
        CreateTopicsRequest(topics=[topic], timeout_ms=30_000),
        "closed",
        ("a:1", CLIENT),
        *[WANTED] * 4,
        "closed",
        ("b:2", CLIENT),
        WANTED,
        "closed",
    ]


def test_topic_of_the_brokers_own_number_of_partitions_needs_only_leaders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = Broker(monkeypatch, created(), described(topic_error=UNKNOWN), described(0, 0, 0))
    create_topic(["a:1"], "t", -1, 1, {})
    assert broker.answers == []


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("there", "topic 't' cannot be created: TOPIC_ALREADY_EXISTS there"),
        (None, "topic 't' cannot be created: TOPIC_ALREADY_EXISTS"),
    ],
)
def test_topic_that_is_refused_is_named_with_its_error(
    monkeypatch: pytest.MonkeyPatch, message: str | None, line: str
) -> None:
    Broker(monkeypatch, created(EXISTS, message))
    with pytest.raises(RequestRefused) as refused:
        create_topic(["a:1"], "t", 1, 1, {})
    assert str(refused.value) == line


def test_leaders_are_awaited_for_30_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Broker(monkeypatch, created(), *[described(NO_LEADER)] * 3, described(0))
    create_topic(["a:1"], "t", 1, 1, {})
    assert late.answers == []
    Broker(monkeypatch, created(), *[described(NO_LEADER)] * 5)
    with pytest.raises(RequestRefused) as refused:
        create_topic(["a:1"], "t", 1, 1, {})
    assert str(refused.value) == "a:1 does not know the leaders of topic 't'"


def listed(*names: str | None) -> MetadataResponse:
    topics: Any = [MetadataResponseTopic(name=name) for name in names]
    return MetadataResponse(topics=topics)


def deleted(*errors: int) -> DeleteTopicsResponse:
    results: Any = [DeletableTopicResult(name="p.a", error_code=each) for each in errors]
    return DeleteTopicsResponse(responses=results)


def test_topics_with_a_prefix_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker(monkeypatch, listed("p.a", "q.p.", None, "p.b"), deleted(0, UNKNOWN))
    delete_topics("a:1", "p.")
    states = [DeleteTopicState(name="p.a"), DeleteTopicState(name="p.b")]
    assert broker.asked == [
        ("a:1", CLIENT),
        MetadataRequest(topics=None, allow_auto_topic_creation=False),
        DeleteTopicsRequest(topics=states, timeout_ms=30_000),
        "closed",
    ]
    Broker(monkeypatch, listed("p.a"), deleted(0, NOT_ALLOWED))
    with pytest.raises(RequestRefused) as refused:
        delete_topics("a:1", "p.")
    assert str(refused.value) == "topic 'p.a' cannot be deleted: TOPIC_AUTHORIZATION_FAILED"


class Shared:
    """A cluster that several tests share."""

    bootstrap_servers = "a:1,b:2"

    def __init__(self) -> None:
        self.calls: list[object] = []
        self.faults = self

    def clear(self) -> None:
        self.calls.append("clear")

    def create_topic(self, name: str, partitions: int, *, configs: object) -> str:
        self.calls.append((name, partitions, configs))
        return name

    def requests(self, api: str | None, client_id: str | None) -> object:
        return (api, client_id)


def test_namespace_has_its_own_names_and_removes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    shared: Any = Shared()
    broker = Broker(monkeypatch, listed(), deleted())
    with Namespace(shared, "-test_x[a/b] ") as first, Namespace(shared, "y" * 99) as second:
        head, _, number = first.prefix.removesuffix(".").rpartition("-")
        assert head == "test-x-a-b"
        assert second.prefix == f"{'y' * 60}-{int(number) + 1}."
        assert first.topic("t") == f"{first.prefix}t"
        assert first.create_topic("t", 2, configs={"a": 1}) == f"{first.prefix}t"
        assert first.create_topic("u") == f"{first.prefix}u"
        assert (first.bootstrap_servers, first.faults) == ("a:1,b:2", shared)
        assert first.requests("Fetch", "me") == ("Fetch", "me")
        made = [(f"{first.prefix}t", 2, {"a": 1}), (f"{first.prefix}u", 1, None)]
        assert shared.calls == made
        broker.answers += [listed(f"{first.prefix}t", "other"), deleted(0)]
    assert shared.calls == [*made, "clear", "clear"]
    states = [DeleteTopicState(name=f"{first.prefix}t")]
    assert broker.asked[-2] == DeleteTopicsRequest(topics=states, timeout_ms=30_000)
    assert {each[0] for each in broker.asked if isinstance(each, tuple)} == {"a:1"}
