"""One story of brokers, told to a controller over the wire: what is answered, what is recorded.

The brokers are this program: it registers them, keeps them alive or lets them fall silent, changes
their ISRs. Broker epochs and topic ids are the controller's own, so answers and records name them
by whom they belong to.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import groupby
from types import TracebackType
from typing import Any

from kraft_wire.metadata.records import decode_record
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kraft_wire.wire.generated.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from kraft_wire.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.json_form import message_to_json
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.record_batch import parse_batches
from tests.controller.broker_cluster import registration
from tests.server.wire_client import WireClient

KEPT_EVERY_S = 0.3
FAR = 1 << 40
"""A metadata offset that is behind everything."""
_OF_BROKERS = (0, 1, 3, 4, 5, 12, 17, 28)
"""RegisterBroker, UnregisterBroker, Partition, Config, PartitionChange, FeatureLevel,
BrokerRegistrationChange, ClearElr."""


class Storyteller:
    """Brokers in touch with one controller.

    Whoever is unfenced and does not want to stop is heard of now and then, between what is told, so
    that a slow machine ends no session: sessions end in `pass_time` alone.
    """

    def __init__(self, address: str, cluster_id: str) -> None:
        self.answers: list[Any] = []
        self.epochs: dict[int, int] = {}
        self._alive: dict[int, int] = {}
        """Brokers to keep alive, each with the last offset that it said it has."""
        self._kept_alive = 0.0
        self._client = WireClient(address)
        self._cluster_id = cluster_id
        self.topic_ids: dict[str, Uuid] = {}

    def __enter__(self) -> Storyteller:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.sock.close()

    def ask(self, request: Message, version: int | None = None) -> Any:
        """Ask, and note the answer."""
        self._keep_alive()
        version = request.MAX_VERSION if version is None else version
        answer = self._client.call(request, version, response_class(request.API_KEY))
        self.answers.append((request.NAME, version, message_to_json(answer, version)))
        return answer

    def note_in_order(self, elements: Sequence[Message], key: str) -> None:
        """Note of the last answer only what its elements say, which have no order of their own."""
        self.answers[-1] = sorted(map(repr, elements), key=lambda text: text.partition(key)[2])

    def register(
        self, broker_id: int, incarnation: int = 1, *, version: int = 4, **fields: object
    ) -> int:
        """Register a broker; what is given differs from a registration without a mistake."""
        request = registration(broker_id, incarnation, cluster_id=self._cluster_id)
        for name, value in fields.items():
            setattr(request, name, value)
        answer = self.ask(request, version)
        if not answer.error_code:
            if self.epochs.get(request.broker_id) != answer.broker_epoch:
                self._alive.pop(request.broker_id, None)  # another life begins fenced
            self.epochs[request.broker_id] = answer.broker_epoch
            self.answers[-1][2]["brokerEpoch"] = f"epoch of {request.broker_id}"
        return int(answer.error_code)

    def heartbeat(self, broker_id: int, offset: int = FAR, version: int = 2, **f: object) -> Any:
        """Let a broker live."""
        values: dict[str, Any] = {"broker_epoch": self.epochs.get(broker_id, 0), **f}
        request = BrokerHeartbeatRequest(
            broker_id=broker_id, current_metadata_offset=offset, **values
        )
        answer = self.ask(request, version)
        if request.broker_epoch == self.epochs.get(broker_id):
            if answer.error_code or answer.is_fenced or request.want_shut_down:
                self._alive.pop(broker_id, None)
            else:
                self._alive[broker_id] = offset
        return answer

    def _keep_alive(self) -> None:
        """Say that brokers live, and nothing else: version 1 has no cordoned directories."""
        if time.monotonic() - self._kept_alive < KEPT_EVERY_S:
            return
        for broker_id, offset in self._alive.items():
            request = BrokerHeartbeatRequest(
                broker_id=broker_id,
                broker_epoch=self.epochs[broker_id],
                current_metadata_offset=offset,
            )
            self._client.call(request, 1, BrokerHeartbeatResponse)
        self._kept_alive = time.monotonic()

    def pass_time(self, seconds: float, alive: Sequence[int]) -> None:
        """Let time pass in which only some brokers are heard of."""
        self._alive = {each: offset for each, offset in self._alive.items() if each in alive}
        until = time.monotonic() + seconds
        noted = len(self.answers)
        while time.monotonic() < until:
            for broker_id in alive:
                self.heartbeat(broker_id)
            time.sleep(0.2)
        del self.answers[noted:]

    def create(self, name: str, *replicas: Sequence[int], min_isr: int = 1) -> None:
        """Create a topic with these replicas."""
        assignments = [
            CreatableReplicaAssignment(partition_index=number, broker_ids=list(each))
            for number, each in enumerate(replicas)
        ]
        topic = CreatableTopic(
            name=name, num_partitions=-1, replication_factor=-1, assignments=assignments
        )
        topic.configs = [CreatableTopicConfig(name="min.insync.replicas", value=str(min_isr))]
        answer = self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        told = answer.topics[0]
        self.answers[-1] = ("CreateTopics", name, told.error_code, told.error_message)
        if not told.error_code:
            self.topic_ids[name] = told.topic_id

    def alter(
        self,
        leader: int,
        topic: str,
        isr: Sequence[int],
        epochs: tuple[int, int],
        *,
        partition: int = 0,
        recovery: int = 0,
        version: int = 3,
        broker_epochs: Sequence[int] | None = None,
    ) -> Any:
        """Ask for an ISR as a leader that knows these leader and partition epochs."""
        data = PartitionData(
            partition_index=partition,
            leader_epoch=epochs[0],
            partition_epoch=epochs[1],
            leader_recovery_state=recovery,
        )
        known = broker_epochs or [self.epochs.get(each, -1) for each in isr]
        if version < 3:
            data.new_isr = list(isr)
        else:
            data.new_isr_with_epochs = [
                BrokerState(broker_id=each, broker_epoch=epoch)
                for each, epoch in zip(isr, known, strict=True)
            ]
        topic_id = self.topic_ids.get(topic, Uuid(b"?" * 16))
        request = AlterPartitionRequest(
            broker_id=leader,
            broker_epoch=self.epochs.get(leader, 0),
            topics=[TopicData(topic_id=topic_id, partitions=[data])],
        )
        return self.ask(request, version)

    def told(self) -> list[str]:
        """Every answer, as text in which nothing is this controller's own."""
        return [_named(each, self.topic_ids) for each in self.answers]


def recorded(log: bytes, topic_ids: dict[str, Uuid]) -> list[str]:
    """What a metadata log says of brokers and their partitions, in the order of its changes.

    Changes of partitions that follow one another are one change of several: they have no order.
    Fencing a broker that is fenced changes nothing, and is left out.
    """
    fenced: dict[int, bool] = {}
    lives: dict[tuple[int, int], str] = {}
    found: list[tuple[int, str]] = []
    for batch in parse_batches(log):
        for value in [] if batch.is_control else batch.values():
            record, version = decode_record(value or b"")
            if record.RECORD_TYPE not in _OF_BROKERS:
                continue
            form: dict[str, Any] = message_to_json(record, version)
            if "brokerEpoch" in form:
                broker_id, epoch = form["brokerId"], form["brokerEpoch"]
                life = sum(1 for known, _ in lives if known == broker_id)
                form["brokerEpoch"] = lives.setdefault((broker_id, epoch), f"life {life}")
            if (
                record.RECORD_TYPE == 17
                and form.get("fenced") == 1
                and fenced.get(form["brokerId"])
            ):
                continue
            if record.RECORD_TYPE in (0, 17) and form.get("fenced", 0) not in (0, None):
                fenced[form["brokerId"]] = form["fenced"] in (1, True)
            found.append((record.RECORD_TYPE, _named((record.NAME, version, form), topic_ids)))
    ordered: list[str] = []
    for kind, group in groupby(found, key=lambda each: each[0]):
        texts = [text for _, text in group]
        ordered += sorted(texts) if kind == 5 else texts
    return ordered


def _named(value: Any, topic_ids: dict[str, Uuid]) -> str:
    """Return a value as text, with topics' names for their ids."""
    text = str(value)
    for name, topic_id in topic_ids.items():
        text = text.replace(_uuid_text(topic_id), f"topic {name}")
    return text


def _uuid_text(topic_id: Uuid) -> str:
    form: Any = message_to_json(AlterPartitionRequest(topics=[TopicData(topic_id=topic_id)]), 3)
    return str(form["topics"][0]["topicId"])
