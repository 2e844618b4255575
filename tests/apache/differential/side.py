"""One of the two brokers that are asked the same: its connections, its topics, its transcript.

Everything that a probe asks through `ask` is written down for the comparison; what it needs to set
the scene goes through `prepare` and is not.
"""

import time
from typing import Any, NamedTuple

from kraft_wire.model import Uuid, uuid_to_text
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest
from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from kraft_wire.wire.generated.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.header import parse_response_header
from kraft_wire.wire.json_form import message_to_json
from kraft_wire.wire.message import Message, UnencodableMessage
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.apache.differential.comparing import Drawn, in_order
from tests.server.wire_client import WireClient
from tests.waiting import HANG_S

__all__ = ["NAMELESS", "NOW_MS", "STRANGER", "Exchange", "Side", "batch"]

NOW_MS = int(time.time() * 1000) - 10_000
"""Stamps the records of both brokers, so that their answers can be compared byte by byte."""

STRANGER = Uuid(b"\x07" * 16)
"""The id of no topic."""

NAMELESS = "nameless"
"""The connection whose client does not say its name."""

READY_SECONDS_MAX = HANG_S
CLOSED = "the connection was closed"
UNSAYABLE = "the version cannot say this"


class Exchange(NamedTuple):
    """What was asked, in words, and what came back in a form that can be compared."""

    question: str
    answer: Any


class Side:
    """One broker; `run` is a prefix that keeps the names of one run apart from another's."""

    def __init__(self, bootstrap: str, run: str) -> None:
        self.bootstrap = bootstrap
        self.run = run
        self.transcript: list[Exchange] = []
        self.drawn = Drawn(run)
        self._lines: dict[str, WireClient] = {}
        self._topic_ids: dict[str, Uuid] = {}
        self._scenes: set[str] = set()

    def begin(self) -> None:
        """Begin a probe, with an empty transcript."""
        self.transcript.clear()
        self.drawn.begin()

    def ask(
        self,
        request: Message,
        version: int,
        question: str = "",
        *,
        line: str = "main",
        hashed: bool = False,
    ) -> Any:
        """Send a request, write its answer down, and return it; None where there was none.

        `hashed` says that Apache takes this answer's lists out of hash tables.
        """
        try:
            request.encode(version)
        except UnencodableMessage:
            self.note(question, UNSAYABLE)
            return None
        sent = self.send(request, version, line=line)
        return self.answer(sent, question, line=line, hashed=hashed)

    def send(self, request: Message, version: int, *, line: str = "main") -> Any:
        """Send a request whose answer is taken later; return what `answer` needs for it."""
        client = self.line(line)
        return request, client.send(request, version)

    def answer(
        self, sent: Any, question: str = "", *, line: str = "main", hashed: bool = False
    ) -> Any:
        """Take and write down the answer to a request that was sent."""
        request, header = sent
        client = self.line(line)
        frame = client.receive_frame()
        if frame is None:
            self.drop(line)
            self.note(question, CLOSED)
            return None
        kind = response_class(request.API_KEY)
        correlation_id, at = parse_response_header(frame, header.api_key, header.api_version)
        assert correlation_id == header.correlation_id
        response, end = kind.decode(frame, header.api_version, at)
        assert end == len(frame), f"{len(frame) - end} bytes behind the answer"
        self.note(question, message_to_json(response, header.api_version), hashed=hashed)
        return response

    def note(self, question: str, answer: Any, *, hashed: bool = False) -> None:
        """Write down anything else that must be alike."""
        comparable = self.drawn.comparable(answer)
        self.transcript.append(Exchange(question, in_order(comparable) if hashed else comparable))

    def note_message(
        self, question: str, message: Message, version: int, *, hashed: bool = False
    ) -> None:
        """Write down an answer that was taken with `prepare`."""
        self.note(question, message_to_json(message, version), hashed=hashed)

    def prepare(self, request: Message, version: int, *, line: str = "main") -> Any:
        """Ask something that belongs to the scene and not to the probe."""
        return self.line(line).call(request, version, response_class(request.API_KEY))

    def line(self, name: str = "main") -> WireClient:
        """A connection, opened when first used; its name is the client id."""
        if name not in self._lines:
            client_id = None if name == NAMELESS else name
            self._lines[name] = WireClient(self.bootstrap, client_id=client_id)
        return self._lines[name]

    def drop(self, name: str) -> None:
        """Close a connection; the next use opens another."""
        self._lines.pop(name).sock.close()

    def close(self) -> None:
        """Close every connection."""
        for name in list(self._lines):
            self.drop(name)

    def name(self, text: str) -> str:
        """A name that this run alone uses."""
        return f"{self.run}-{text}"

    def has(self, name: str) -> bool:
        """Whether a topic was made by a probe before."""
        return name in self._topic_ids

    def once(self, scene: str) -> bool:
        """Whether a scene is set already; it counts as set from now on."""
        known = scene in self._scenes
        self._scenes.add(scene)
        return known

    def topic(self, text: str, partitions: int = 1, **configs: Any) -> str:
        """Return the name of a topic, which exists and is served when this returns."""
        name = self.name(text)
        if name in self._topic_ids:
            return name
        settings = [
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ]
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, configs=settings
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        (created,) = self.prepare(request, 7).topics
        assert created.error_code == 0, created
        self.learn(name, created.topic_id)
        self._await_served(name, partitions)
        return name

    def learn(self, name: str, topic_id: Uuid) -> None:
        """Remember the id that a topic got."""
        self._topic_ids[name] = topic_id
        self.drawn.words[uuid_to_text(topic_id)] = f"id of {name}"

    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until the broker knows nothing of it."""
        self.drawn.words[uuid_to_text(self._topic_ids.pop(name))] = f"old id of {name}"
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000)
        (deleted,) = self.prepare(request, 5).responses
        assert deleted.error_code == 0, deleted
        asked = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
        )
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not self.prepare(asked, 12).topics[0].error_code:
            assert time.monotonic() < deadline, f"{name} does not go"

    def topic_id(self, name: str) -> Uuid:
        """The id of a topic of ours; of one that a request created, once Metadata knows it."""
        deadline = time.monotonic() + READY_SECONDS_MAX
        while name not in self._topic_ids:
            asked = MetadataRequest(
                topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
            )
            (found,) = self.prepare(asked, 12).topics
            if found.error_code == 0:
                self.learn(name, found.topic_id)
            assert time.monotonic() < deadline, f"{name} did not appear"
        return self._topic_ids[name]

    def await_topic(self, text: str, partitions: int = 1) -> None:
        """Wait until a topic that exists is served again."""
        self.topic_id(self.name(text))
        self._await_served(self.name(text), partitions)

    def leader_epoch(self, name: str) -> int:
        """The present leader epoch of partition 0."""
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
        return int(self.prepare(asked, 12).topics[0].partitions[0].leader_epoch)

    def filled(self, text: str, batches: int = 10) -> str:
        """A topic whose partition 0 holds batches of two records, a second apart."""
        name = self.name(text)
        known = name in self._topic_ids
        self.topic(text)
        for number in range(0 if known else batches):
            stored = self.produce(name, batch(b"a", b"b", timestamp=NOW_MS + 1_000 * number))
            assert stored == 0, stored
        return name

    def produce(self, name: str, records: bytes, partition: int = 0) -> int:
        """Store records; return the error."""
        data = PartitionProduceData(index=partition, records=records)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=name, partition_data=[data])],
        )
        answer = self.prepare(request, 11).responses[0].partition_responses[0]
        return int(answer.error_code)

    def group(self, text: str) -> str:
        """Return the name of a group whose coordinator is there and has loaded."""
        name = self.name(text)
        find = FindCoordinatorRequest(coordinator_keys=[name])
        fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None)])
        deadline = time.monotonic() + READY_SECONDS_MAX
        while self.prepare(find, 4).coordinators[0].error_code:
            assert time.monotonic() < deadline, "no coordinator"
        while self.prepare(fetch, 8).groups[0].error_code:
            assert time.monotonic() < deadline, "the coordinator does not load"
        return name

    def await_group(self, name: str) -> None:
        """Wait until a group is shown, which Apache's is once its first record is committed."""
        request = DescribeGroupsRequest(groups=[name])
        deadline = time.monotonic() + READY_SECONDS_MAX
        while self.prepare(request, 5).groups[0].group_state == "Dead":
            assert time.monotonic() < deadline, f"{name} does not appear"

    def _await_served(self, name: str, partitions: int) -> None:
        asked = [ListOffsetsPartition(partition_index=n, timestamp=-1) for n in range(partitions)]
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=name, partitions=asked)])
        deadline = time.monotonic() + READY_SECONDS_MAX
        while True:
            (answer,) = self.prepare(request, 7).topics
            if not any(each.error_code for each in answer.partitions):
                return
            assert time.monotonic() < deadline, answer
            time.sleep(0.01)


def batch(*values: Any, key: bytes | None = b"k", timestamp: int = NOW_MS, **more: Any) -> bytes:
    """A batch with one record per value."""
    records = [Record(key, value, timestamp=timestamp) for value in values]
    return bytes(build_batch(records, **more))
