"""A controller over a metadata log that commits at once: the quorum of one, without files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from kraft_wire.controller.controller import Controller
from kraft_wire.controller.requests import decide
from kraft_wire.metadata.loader import MetadataLoader
from kraft_wire.metadata.records import VersionedRecord, decode_record, encode_record
from kraft_wire.model import ANONYMOUS, Principal, Uuid
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from kraft_wire.wire.generated.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from kraft_wire.wire.message import Message

DIRECTORY = Uuid(bytes(15) + b"\x77")


class SeededRandomSource:
    """The chance port, from a seed."""

    def __init__(self, seed: int = 1) -> None:
        self._random = Random(seed)

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


@dataclass
class Context:
    """What a handler is told of a request."""

    api_version: int
    now_ms: int = 0
    wall_ms: int = 0
    principal: Principal = ANONYMOUS
    is_direct: bool = False
    listener: str = "PLAINTEXT"


class OneNodeCluster:
    """Hands requests to a controller, commits what it decides, and keeps the records."""

    def __init__(self, properties: Mapping[str, str] | None = None, brokers: int = 1) -> None:
        settings = NodeSettings(properties or {})
        self.controller = Controller(
            node_id=1, settings=settings, random_source=SeededRandomSource()
        )
        self.loader = MetadataLoader()
        self.committed: list[VersionedRecord] = []
        level = FeatureLevelRecord(name="metadata.version", feature_level=30)
        first = self.controller.become_active(
            self.loader.image,
            leader_epoch=1,
            in_transaction=False,
            bootstrap=[VersionedRecord(level)],
            now_ms=0,
        )
        self.commit(first)
        for number in range(1, brokers + 1):
            self.add_broker(number)

    def add_broker(
        self, number: int, *, fenced: bool = False, log_dirs: Sequence[Uuid] = (DIRECTORY,)
    ) -> None:
        """Register a broker."""
        epoch = self.loader.last_offset + 1
        record = RegisterBrokerRecord(
            broker_id=number,
            broker_epoch=epoch,
            end_points=[BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=9092)],
            fenced=True,
            log_dirs=list(log_dirs),
        )
        records = [VersionedRecord(record, 4)]
        if not fenced:
            change = BrokerRegistrationChangeRecord(broker_id=number, broker_epoch=epoch, fenced=-1)
            records.append(VersionedRecord(change))
        self.commit(records)

    def ask(
        self,
        request: Message,
        version: int,
        now_ms: int = 0,
        *,
        wall_ms: int = 0,
        principal: Principal = ANONYMOUS,
        is_direct: bool = False,
    ) -> Message:
        """Return the answer to a request, after its records are committed."""
        context = Context(version, now_ms, wall_ms, principal, is_direct)
        result = decide(self.controller, context, request)
        self.commit(result.records)
        if result.appended is not None:
            result.appended(self.loader.last_offset)
        return result.response

    def commit(self, records: Sequence[VersionedRecord]) -> None:
        """Append records, as bytes and back, and publish the image that follows from them."""
        decoded = [decode_record(encode_record(record)) for record in records]
        assert decoded == list(records)
        self.committed += decoded
        if records:
            messages = [each.record for each in decoded]
            self.controller.appended(decoded, self.loader.last_offset + 1, 0)
            self.loader.replay_batch(messages, self.loader.last_offset + 1, 1)
            self.controller.publish(self.loader.image)
