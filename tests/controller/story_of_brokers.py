"""How a random story is told, and the lives of the brokers in it; see `cluster_story`."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple, TypeVar

from kraft_wire.metadata.features import ELR_VERSION, METADATA_VERSION
from kraft_wire.metadata.image import PartitionImage, TopicImage
from kraft_wire.metadata.records import VersionedRecord, encode_record
from kraft_wire.wire.generated.broker_heartbeat import BrokerHeartbeatRequest
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from kraft_wire.wire.generated.unregister_broker import UnregisterBrokerRequest
from kraft_wire.wire.message import Message
from tests.controller.broker_cluster import BrokerCluster, directory, registration

T = TypeVar("T")

LEVELS = (7, 8, 11, 12, 14, 17, 18, 22, 23, 29)


class Told(NamedTuple):
    """One thing that Apache's controller answers too: a request of ours, or the passing of time."""

    request: Message | None
    version: int
    answer: Message | None
    records: list[str]


class Brokers:
    """Brokers that come, live, lose directories and go."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lines = ["begin"]
        self.told: list[Told] = []
        self._incarnations = 0
        self.cluster = BrokerCluster(keeps_elr=self._is_likely(0.5))
        if self._is_likely(0.4):
            self._lower_level(self._one_of(LEVELS))
        self.lines += [f"record {encode_record(each).hex()}" for each in self.cluster.committed]
        for broker_id in range(2, 6):
            self._incarnations += 1
            self._ask(registration(broker_id, self._incarnations))
            epoch = self.cluster.loader.image.brokers[broker_id].broker_epoch
            if broker_id == 2 or self._is_likely(0.8):
                self._lives(broker_id, epoch, self.cluster.loader.last_offset)

    # -- brokers ---------------------------------------------------------------------------------

    def register(self, broker_id: int | None = None) -> None:
        number = self._broker_id() if broker_id is None else broker_id
        known = self.cluster.loader.image.brokers.get(number)
        is_new = known is None or known.in_controlled_shutdown or self._is_likely(0.8)
        self._incarnations += is_new
        incarnation = self._incarnations
        if known is not None and not is_new:
            incarnation = int.from_bytes(known.incarnation_id)
        request = registration(
            number,
            incarnation,
            known.broker_epoch if known is not None and self._is_likely(0.5) else -1,
            log_dirs=[directory(number, each) for each in range(self.random.randint(1, 3))],
            rack=self._one_of((None, "a", "b")),
        )
        if self._is_likely(0.03):
            request.log_dirs = [directory(number), directory(number + 1)]
        if self._is_likely(0.05):
            request.features = request.features[: self.random.randrange(len(request.features))]
        self._ask(request, self._one_of((2, 3, 4, 4)))

    def live(self) -> None:
        number, last_offset = self._broker_id(), self.cluster.loader.last_offset
        directories = [directory(number, each) for each in range(3)]
        known = self.cluster.loader.image.brokers.get(number)
        wants_fence = self._is_likely(0.1)
        is_unfenced = known is not None and known.fenced and not wants_fence
        self._ask(
            BrokerHeartbeatRequest(
                broker_id=number,
                broker_epoch=self._epoch(number),
                current_metadata_offset=self._one_of((last_offset,) * 4 + (last_offset - 1, 0)),
                want_fence=wants_fence,
                want_shut_down=self._is_likely(0.15),
                offline_log_dirs=(
                    self._some(directories) if self._is_likely(0.15) and not is_unfenced else []
                ),
                cordoned_log_dirs=self._some(directories) if self._is_likely(0.3) else None,
            )
        )

    def unregister(self) -> None:
        self._ask(UnregisterBrokerRequest(broker_id=self._broker_id()))

    def pass_time(self) -> None:
        """Ten seconds, in which one broker is silent at most."""
        silent = self._broker_id()
        for _ in range(2):
            self.cluster.now_ms += 5_000
            self.lines.append(f"time {self.cluster.now_ms}")
            for number, known in sorted(self.cluster.loader.image.brokers.items()):
                if number != silent:
                    epoch, last_offset = self._epoch(number), self.cluster.loader.last_offset
                    self._lives(number, epoch, last_offset, wants_fence=known.fenced)
        since = len(self.cluster.committed)
        while records := self.cluster.controller.stale_broker_records(self.cluster.now_ms):
            self.cluster.commit(records)
        self.lines.append("tick")
        self.told.append(Told(None, 0, None, self._written(since)))

    def _lives(self, number: int, epoch: int, offset: int, *, wants_fence: bool = False) -> None:
        request = BrokerHeartbeatRequest(
            broker_id=number,
            broker_epoch=epoch,
            current_metadata_offset=offset,
            want_fence=wants_fence,
        )
        self._ask(request)

    # -- the telling -----------------------------------------------------------------------------

    def _ask(self, request: Message, version: int | None = None) -> None:
        number = request.MAX_VERSION if version is None else version
        since, body = len(self.cluster.committed), request.encode(number)
        answer = self.cluster.request(request, number)
        self.lines.append(f"ask {request.API_KEY} {number} {body.hex()}")
        self.told.append(Told(request, number, answer, self._written(since)))

    def _do(self, request: Message) -> None:
        since = len(self.cluster.committed)
        self.cluster.request(request)
        self.lines += [f"record {each}" for each in self._written(since)]

    def _written(self, since: int) -> list[str]:
        return [encode_record(each).hex() for each in self.cluster.committed[since:]]

    def _lower_level(self, level: int) -> None:
        levels = [(METADATA_VERSION, level)]
        if level < 23:
            levels.insert(0, (ELR_VERSION, 0))
        records = [FeatureLevelRecord(name=name, feature_level=each) for name, each in levels]
        self.cluster.commit([VersionedRecord(each) for each in records])

    # -- chance ----------------------------------------------------------------------------------

    def _is_likely(self, share: float) -> bool:
        return self.random.random() < share

    def _one_of(self, them: Sequence[T]) -> T:
        return self.random.choice(them)

    def _some(self, them: Sequence[T], share: float = 0.5) -> list[T]:
        return [each for each in them if self._is_likely(share)]

    def _mistake(self) -> int:
        return self._one_of((0,) * 20 + (-1, 1))

    def _broker_id(self) -> int:
        return self.random.randint(2, 6)

    def _epoch(self, broker_id: int) -> int:
        known = self.cluster.loader.image.brokers.get(broker_id)
        return (3 if known is None else known.broker_epoch) + self._mistake()

    def _partition(self) -> tuple[TopicImage, PartitionImage]:
        topics = list(self.cluster.loader.image.topics())
        topic = self._one_of(topics)
        return topic, topic.partitions[self.random.randrange(len(topic.partitions))]
