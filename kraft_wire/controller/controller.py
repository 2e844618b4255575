"""The state of a controller: the image that requests are decided by, sessions, and timers.

Requests are decided against everything that was appended, committed or not (KIP-500 "speculative"
state), so several may be in flight. After a loss of leadership, `renounce` drops uncommitted
records; images are immutable, so the previous image is still there. Broker sessions are in no
record and are kept while the controller is active.

Not here: how a request is decided (`requests`), the log, replication, elections of the quorum.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Final, Protocol

from kraft_wire.controller.activation import first_records
from kraft_wire.controller.broker_sessions import BrokerSessions
from kraft_wire.controller.periodic_elections import PeriodicElections
from kraft_wire.controller.token_sweep import TokenSweep
from kraft_wire.frozen import frozen
from kraft_wire.metadata.image import BROKER_RESOURCE, EMPTY_IMAGE, MetadataImage
from kraft_wire.metadata.loader import MetadataLoader
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import Principal, RandomSource
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.no_op_record import NoOpRecord
from kraft_wire.wire.message import Message

__all__ = [
    "Controller",
    "ControllerContext",
    "ControllerResult",
    "QuorumUpgrade",
    "TopicChangeBudget",
    "TopicChangeQuota",
    "layered",
]

_IDLE_KEY: Final = "metadata.max.idle.interval.ms"
_SESSION_KEY: Final = "broker.session.timeout.ms"


class ControllerContext(Protocol):
    """A request's context for a handler (`broker.context.RequestContext` implements it)."""

    @property
    def api_version(self) -> int: ...

    @property
    def now_ms(self) -> int:
        """Time of the decision on the monotonic clock."""
        ...

    @property
    def wall_ms(self) -> int:
        """Time of day of the decision."""
        ...

    @property
    def principal(self) -> Principal:
        """The requester."""
        ...

    @property
    def is_direct(self) -> bool:
        """Whether a client sent the request to a controller, so that no broker has checked it."""
        ...


class TopicChangeBudget(Protocol):
    """The quota of one request on created and deleted partitions (KIP-599)."""

    throttle_ms: int
    """The time for the answer."""

    def admits(self, partitions: int) -> bool:
        """Take partitions; return False if the change must wait."""
        ...


class TopicChangeQuota(Protocol):
    """The quotas of all clients on created and deleted partitions."""

    def budget(self, context: ControllerContext, strict_from: int) -> TopicChangeBudget | None:
        """Return the quota of a request; older versions than `strict_from` are never refused.

        None without a quota, and for the node's own requests.
        """
        ...


@frozen
class QuorumUpgrade:
    """A requested level of kraft.version: the quorum writes its record."""

    level: int
    validate_only: bool


@frozen
class ControllerResult:
    """The result of a request: records, and the answer to send once they are committed."""

    response: Message
    records: Sequence[VersionedRecord] = field(default=())
    """Empty without changes: then the answer is due at once."""
    is_atomic: bool = True
    """Whether all records must be in one batch. Changes of all partitions of a broker may be more
    than a batch holds; they are safe to write in parts, in order."""
    appended: Callable[[int], None] | None = None
    """Called with the offset of the last record, once all of them are in the log."""
    values: tuple[bytes, ...] = ()
    """The records as they are appended; `requests.decide` fills them in."""
    quorum_upgrade: QuorumUpgrade | None = None
    """If set, the quorum decides first; `update_features` answers its refusal."""


class Controller:
    """One controller: the state at the end of the appended records, and the node's own settings."""

    topic_change_quota: TopicChangeQuota | None = None
    """Limits changes of topics; None until the first quota is set."""

    def __init__(
        self,
        *,
        node_id: int,
        settings: NodeSettings,
        random_source: RandomSource,
        cluster_id: str = "",
        image: MetadataImage = EMPTY_IMAGE,
    ) -> None:
        assert node_id >= 0, node_id
        self.cluster_id = cluster_id
        self.node_id = node_id
        self.random_source = random_source
        self.leader_epoch: int | None = None
        """The epoch in which this controller is active; None while it is not."""
        self.kraft_version: int | None = None
        """The quorum's level, set by the host; None where the host cannot raise it."""
        self.voter_ids: Sequence[int] = ()
        """The quorum's voters, set by the host: unregistered ones block upgrades."""
        self.sessions = BrokerSessions(node_id)
        """Sessions of all registered brokers, while active."""
        self._elections = PeriodicElections(settings)
        self.token_sweep = TokenSweep(settings)
        """The removal of expired delegation tokens."""
        self.next_offset = 0
        """Offset of the next batch; set by the host, which also appends batches of its own."""
        self._loader = MetadataLoader(image)
        self._idle_since_ms = 0
        self._file_settings = settings
        self._own_name = str(node_id)
        self._followed: tuple[Mapping[str, str], Mapping[str, str]] | None = None
        self.settings = layered(settings, image, node_id)
        """The node's settings under the dynamic values of the image."""

    @property
    def image(self) -> MetadataImage:
        """The image for decisions: of all appended records while active, else of committed ones."""
        return self._loader.image

    @property
    def is_active(self) -> bool:
        """Whether this controller is active; otherwise it answers NOT_CONTROLLER."""
        return self.leader_epoch is not None

    # -- leadership ------------------------------------------------------------------------------

    def become_active(
        self,
        image: MetadataImage,
        *,
        leader_epoch: int,
        in_transaction: bool,
        bootstrap: Sequence[VersionedRecord],
        now_ms: int,
    ) -> list[VersionedRecord]:
        """Become active; return the batch to append first, which may be empty.

        `image` has the committed records below the start of the epoch; `in_transaction` tells
        whether a metadata transaction is open there; `bootstrap` has the records of
        `bootstrap.checkpoint`, used for an empty log.
        """
        assert leader_epoch >= 0, leader_epoch
        self.leader_epoch = leader_epoch
        self._loader = MetadataLoader(image, in_transaction=in_transaction)
        self._idle_since_ms = now_ms
        self.sessions.begin(image.brokers, image.offset, now_ms)
        self._elections.begin(now_ms)
        self.token_sweep.begin(now_ms)
        self.next_offset = image.offset + 1
        self._follow_settings()
        return first_records(image, self.settings, bootstrap, in_transaction=in_transaction)

    def appended(self, records: Sequence[VersionedRecord], base_offset: int, now_ms: int) -> None:
        """Take note that a batch is in the log from `base_offset` on, committed or not."""
        assert self.leader_epoch is not None, "only the active controller appends"
        assert records, base_offset
        self._idle_since_ms = now_ms
        before = self.image.configs
        self._loader.replay_batch([each.record for each in records], base_offset, self.leader_epoch)
        self.sessions.follow(records, base_offset)
        self.next_offset = base_offset + len(records)
        if self.image.configs is not before:
            self._follow_settings()

    def publish(self, image: MetadataImage) -> None:
        """Take the image of the committed log.

        It is ignored while active: committed records were appended before.
        """
        if self.is_active and image.offset <= self._loader.last_offset:
            return
        assert image.offset >= self.image.offset, (image.offset, self.image.offset)
        before = self.image.configs
        self._loader = MetadataLoader(image)
        if image.configs is not before:
            self._follow_settings()

    def renounce(self, committed: MetadataImage) -> None:
        """Become inactive and drop uncommitted records."""
        assert committed.offset <= self._loader.last_offset or not self.is_active
        self.leader_epoch = None
        self.sessions.end()
        self._elections.end()
        self.token_sweep.end()
        self._loader = MetadataLoader(committed)
        self._follow_settings()

    # -- time ------------------------------------------------------------------------------------

    def idle_deadline_ms(self) -> int | None:
        """Return when `idle_records` has records, None while inactive or switched off."""
        interval_ms = self.settings.integer(_IDLE_KEY)
        assert interval_ms >= 0, interval_ms
        if not self.is_active or interval_ms == 0:
            return None
        return self._idle_since_ms + interval_ms

    def idle_records(self, now_ms: int) -> list[VersionedRecord]:
        """Return the record that advances an idle cluster's offset, if it is due (KIP-835)."""
        deadline_ms = self.idle_deadline_ms()
        if deadline_ms is None or now_ms < deadline_ms:
            return []
        assert self.is_active, "only the active controller has a deadline"
        return [VersionedRecord(NoOpRecord())]

    @property
    def session_timeout_ms(self) -> int:
        """Time without a heartbeat after which a broker is fenced."""
        return self.settings.integer(_SESSION_KEY)

    def session_deadline_ms(self) -> int | None:
        """Return when `stale_broker_records` has records, None while no session can end."""
        if not self.is_active:
            return None
        assert self.session_timeout_ms > 0
        return self.sessions.deadline_ms(self.image.brokers, self.session_timeout_ms)

    def stale_broker_records(self, now_ms: int) -> list[VersionedRecord]:
        """Return the records that fence one broker whose session has ended; empty without one.

        One broker at a time: the new leaders of its partitions are known before the next broker is
        checked.
        """
        if not self.is_active:
            return []
        image = self.image
        broker_id = self.sessions.ended(image.brokers, self.session_timeout_ms, now_ms)
        if broker_id is None:
            return []
        from kraft_wire.controller.broker_changes import BrokerChanges

        assert not image.brokers[broker_id].fenced, broker_id
        assert broker_id != self.node_id, (
            "the broker in this process lasts as long as its controller"
        )
        return BrokerChanges(image, self.settings, broker_id).fence()

    def election_deadline_ms(self) -> int | None:
        """Return when `election_records` may have records, None while no replica could lead."""
        return self._elections.deadline_ms(self.image)

    def election_records(self, now_ms: int) -> list[VersionedRecord]:
        """Return the records of elections that are due; call again also after an empty result."""
        assert self.is_active, "only the active controller elects"
        return self._elections.records(self.image, self.settings, now_ms)

    def _follow_settings(self) -> None:
        """Apply the brokers' dynamic values if they have changed."""
        image = self.image
        values = image.config(BROKER_RESOURCE, ""), image.config(BROKER_RESOURCE, self._own_name)
        followed, self._followed = self._followed, values
        if followed is not None and followed[0] is values[0] and followed[1] is values[1]:
            return
        self.settings = layered(self._file_settings, self.image, self.node_id)
        assert self.settings.file_values == self._file_settings.file_values


def layered(settings: NodeSettings, image: MetadataImage, node_id: int) -> NodeSettings:
    """Return a node's settings with an image's dynamic values; the node's own override all."""
    assert node_id >= 0, node_id
    return settings.with_dynamic(
        image.config(BROKER_RESOURCE, ""), image.config(BROKER_RESOURCE, str(node_id))
    )
