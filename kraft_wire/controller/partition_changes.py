"""The record of one partition's change: of its replicas, its ISR or the state of brokers.

Leader election (KIP-631, KIP-460), eligible leader replicas (KIP-966), recovery after an unclean
election (KIP-704), the end of a reassignment (KIP-455), log directories (KIP-858). The caller sets
the wanted values; `record` returns the PartitionChangeRecord, or None without a change.

Read `record` first; it names the steps in the order of release 4.3.1. Not here: which partitions a
change of a broker affects (`broker_changes`), and the requests of clients.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Final

from kraft_wire.controller.directories import default_directory
from kraft_wire.frozen import frozen
from kraft_wire.metadata.directory_ids import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
)
from kraft_wire.metadata.features import DIRECTORIES_FROM, ELR_VERSION
from kraft_wire.metadata.image import (
    NO_LEADER,
    TOPIC_RESOURCE,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from kraft_wire.metadata.records import VersionedRecord, partition_record_version
from kraft_wire.metadata.replay_topics import UNCHANGED_LEADER
from kraft_wire.model import Uuid
from kraft_wire.settings.node_settings import NodeSettings, topic_sources
from kraft_wire.settings.topic import TOPIC_KEYS
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord

__all__ = [
    "RECOVERED",
    "RECOVERING",
    "Accepts",
    "Election",
    "Elections",
    "PartitionChange",
    "is_active",
]

Accepts = Callable[[int], bool]
"""Whether a broker's state allows it to lead."""

RECOVERED: Final = 0
RECOVERING: Final = 1
"""States of a leader after an unclean election (KIP-704)."""
_ISR_SHRINK_KEEPS_EPOCH_FROM: Final = 12
"""metadata.version since which a smaller ISR does not raise the leader epoch (KAFKA-15021)."""
_MIN_ISR: Final = TOPIC_KEYS["min.insync.replicas"]
_UNCLEAN: Final = TOPIC_KEYS["unclean.leader.election.enable"]
_Ids = tuple[int, ...]


class Election(Enum):
    """The replicas that may be elected if the leader cannot stay."""

    ONLINE = "online"
    """A member of the ISR, in the order of the replicas."""
    PREFERRED = "preferred"
    """The first replica, even if another one leads."""
    UNCLEAN = "unclean"
    """Any active replica rather than none: records that it lacks are lost."""


@frozen
class Elections:
    """The rules of elections in one topic, from the metadata."""

    image: MetadataImage
    topic: TopicImage
    min_isr: int
    """`min.insync.replicas`, at most the number of replicas."""
    is_unclean_allowed: bool

    @staticmethod
    def of(image: MetadataImage, topic: TopicImage, settings: NodeSettings) -> "Elections":
        """Read the topic's settings, else the cluster's."""
        own = image.config(TOPIC_RESOURCE, topic.name)
        min_isr = topic_sources(_MIN_ISR, own, settings)[0].value
        is_unclean_allowed = topic_sources(_UNCLEAN, own, settings)[0].value
        assert isinstance(min_isr, int), min_isr
        assert isinstance(is_unclean_allowed, bool), is_unclean_allowed
        assert image.topics_by_name.get(topic.name) is topic, topic.name
        first = topic.partitions.get(0)
        replicas = 1 if first is None else len(first.replicas)
        return Elections(image, topic, min(min_isr, replicas), is_unclean_allowed)

    @property
    def usual(self) -> Election:
        """The election that an event in the cluster causes."""
        return Election.UNCLEAN if self.is_unclean_allowed else Election.ONLINE

    @property
    def keeps_elr(self) -> bool:
        """Whether eligible leader replicas are kept (KIP-966)."""
        return self.image.finalized_features.get(ELR_VERSION, 0) > 0


def is_active(image: MetadataImage, broker_id: int) -> bool:
    """Return whether a broker is registered, unfenced, and not stopping."""
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.active


class PartitionChange:
    """A change of one partition: set the wanted values, then call `record`."""

    def __init__(
        self,
        elections: Elections,
        before: PartitionImage,
        *,
        accepts: Accepts | None = None,
        election: Election | None = None,
    ) -> None:
        """Begin with the partition as it is; by default active brokers may lead."""
        assert before.partition in elections.topic.partitions, before
        image = elections.image
        self.before = before
        self.isr = before.isr
        self.replicas = before.replicas
        self.removing_replicas = before.removing_replicas
        self.adding_replicas = before.adding_replicas
        self.leader_recovery_state = before.leader_recovery_state
        self.unclean_shutdown: _Ids = ()
        """Brokers whose logs may have lost their ends: they are no longer eligible."""
        self.directories = dict(zip(before.replicas, before.directories, strict=False))
        self._known_directories = dict(self.directories)
        self._elections = elections
        self._image = image
        self._election = elections.usual if election is None else election
        self._accepts: Accepts = accepts or (lambda broker_id: is_active(image, broker_id))
        self._elr = before.eligible_leader_replicas
        assert before.replicas, before
        self._made = PartitionChangeRecord(
            topic_id=elections.topic.topic_id, partition_id=before.partition
        )

    def assign(self, replica: int, directory: Uuid) -> None:
        """Name the directory of a replica, from where it may lead a partition without a leader.

        In 4.3.1 a member of the ISR that names another directory after its broker was unfenced
        leads only after the broker's next restart; until then the partition has no leader.
        """
        assert replica in self.before.replicas, replica
        self.directories[replica] = directory
        if self.before.leader == NO_LEADER:
            self._known_directories[replica] = directory

    def record(self) -> VersionedRecord | None:
        """Return the record to write, None without a change. Call it once."""
        made = self._made
        assert made.leader == UNCHANGED_LEADER, made
        self._complete_reassignment()
        self._find_elr()
        self._elect()
        if made.leader == UNCHANGED_LEADER and not set(self.before.replicas) <= set(self.replicas):
            made.leader = self.before.leader  # who is removed must see that it is (leader epoch)
        self._set_elr()
        self._set_isr()
        self._set_last_known_leader()
        self._set_assignment()
        if self.leader_recovery_state != self.before.leader_recovery_state:
            made.leader_recovery_state = self.leader_recovery_state
        unchanged = PartitionChangeRecord(topic_id=made.topic_id, partition_id=made.partition_id)
        if made == unchanged:
            return None
        assert made.isr is None or set(made.isr) <= set(self.replicas), made
        assert made.leader < 0 or made.leader in self.replicas, made
        return VersionedRecord(made, partition_record_version(self._image.metadata_version))

    # -- the steps -------------------------------------------------------------------------------

    def _complete_reassignment(self) -> None:
        """Complete a reassignment once the ISR has all added replicas (KIP-455).

        If it removes more replicas than it adds, the ISR must have all that remain. A second
        reassignment can remove a replica that the first one added; it is still named as added.
        The change does not wait for that replica, while release 4.3.1 waits forever.
        """
        if not self.removing_replicas and not self.adding_replicas:
            return
        assert self.replicas, self.before
        isr = _without(self.isr, self.removing_replicas)
        replicas = _without(self.replicas, self.removing_replicas)
        adding = _without(self.adding_replicas, self.removing_replicas)
        is_smaller = len(adding) < len(self.removing_replicas)
        needed = {*adding, *(replicas if is_smaller else ())}
        if not isr or not replicas or not needed <= set(isr):
            return
        self.isr, self.replicas = isr, replicas
        self.removing_replicas = self.adding_replicas = ()

    def _find_elr(self) -> None:
        """Keep replicas eligible that leave a too small ISR, unless their logs may be cut.

        A replica that a reassignment removes is not eligible: if it became one again, it could lead
        with an empty log. Release 4.3.1 keeps it eligible.
        """
        if not self._elections.keeps_elr:
            return
        if len(self.isr) >= self._elections.min_isr:
            self._elr = ()
            return
        candidates = sorted({*self._elr, *self.before.isr} & {*self.replicas})
        self._elr = _without(candidates, (*self.isr, *self.unclean_shutdown))
        assert not {*self._elr} & {*self.isr}, self._elr

    def _elect(self) -> None:
        """Keep the leader, or elect another one; an unclean leader is alone in the ISR."""
        leader, is_unclean = self._leader()
        assert leader != NO_LEADER or not is_unclean
        made = self._made
        if leader == self.before.leader:
            return
        assert leader == NO_LEADER or leader in self.replicas, leader
        made.leader = leader
        if leader in self._elr:
            self.isr, self._elr = (leader,), _without(self._elr, (leader,))
        if is_unclean:
            made.isr = [leader]
            if self.before.leader_recovery_state != RECOVERING:
                made.leader_recovery_state = RECOVERING

    def _leader(self) -> tuple[int, bool]:
        """Return the new leader, and whether its election may lose records."""
        in_order = [self.before.leader, *self.replicas]
        if self._election is Election.PREFERRED:
            in_order.insert(0, self.replicas[0])
        for replica in in_order:
            if self._may_lead(replica):
                return replica, False
        nobody_is_eligible = self._elections.keeps_elr and not self.isr and not self._elr
        known = self.before.last_known_elr
        if nobody_is_eligible and len(known) == 1 and self._is_acceptable(known[0]):
            return known[0], True
        if self._election is Election.UNCLEAN:
            for replica in self.replicas:
                if self._is_acceptable(replica):
                    return replica, True
        return NO_LEADER, False

    def _may_lead(self, replica: int) -> bool:
        """Return whether a replica has all committed records, and may lead."""
        eligible = self.isr or self._elr
        assert NO_LEADER not in eligible, self.before
        return replica in eligible and self._is_acceptable(replica)

    def _is_acceptable(self, replica: int) -> bool:
        """Return whether the broker may lead and the replica's directory is online."""
        broker = self._image.brokers.get(replica)
        if broker is None or replica not in self.before.replicas or not self._accepts(replica):
            return False
        directory = self._known_directories.get(replica, MIGRATING_DIRECTORY)
        if directory == LOST_DIRECTORY:
            return False
        if directory in (MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY) or not broker.log_dirs:
            return True
        return directory in broker.log_dirs

    def _set_elr(self) -> None:
        if self._made.isr is not None or not self._elections.keeps_elr:
            self._elr = ()
        assert self._elections.keeps_elr or not self._elr
        if self._elr != self.before.eligible_leader_replicas:
            self._made.eligible_leader_replicas = list(self._elr)

    def _set_isr(self) -> None:
        """Keep the last member of an ISR in it if there are no eligible replicas."""
        made, before = self._made, self.before
        assert len(set(self.isr)) == len(self.isr), self.isr
        may_be = bool(self.isr) or self._elections.keeps_elr
        if made.isr is None and may_be and self.isr != before.isr:
            made.isr = list(self.isr)
        if made.isr is None or self._image.metadata_version >= _ISR_SHRINK_KEEPS_EPOCH_FROM:
            return
        if made.leader == UNCHANGED_LEADER and not set(before.isr) <= set(made.isr):
            made.leader = before.leader

    def _set_last_known_leader(self) -> None:
        """Keep the last leader while a partition has none; drop it with the next leader."""
        if not self._elections.keeps_elr:
            return
        made, before = self._made, self.before
        assert made.last_known_elr is None, made
        if made.leader == NO_LEADER and not before.last_known_elr:
            made.last_known_elr = [before.leader]
        elif made.leader >= 0 and before.last_known_elr:
            made.last_known_elr = []

    def _set_assignment(self) -> None:
        made, before = self._made, self.before
        if self._image.metadata_version >= DIRECTORIES_FROM:
            directories = [self._directory(replica) for replica in self.replicas]
            assert directories, before
            known = before.directories or (MIGRATING_DIRECTORY,) * len(before.replicas)
            if directories != list(known):
                made.directories = directories
        if self.replicas != before.replicas:
            made.replicas = list(self.replicas)
        if self.removing_replicas != before.removing_replicas:
            made.removing_replicas = list(self.removing_replicas)
        if self.adding_replicas != before.adding_replicas:
            made.adding_replicas = list(self.adding_replicas)

    def _directory(self, replica: int) -> Uuid:
        if replica in self.directories:
            return self.directories[replica]
        if replica in self.before.replicas:
            return MIGRATING_DIRECTORY
        return default_directory(self._image.brokers[replica])


def _without(ids: Sequence[int], others: Iterable[int]) -> _Ids:
    left_out = set(others)
    left = tuple(each for each in ids if each not in left_out)
    assert len(left) <= len(ids)
    return left
