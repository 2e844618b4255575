"""Choice of brokers for a new partition's replicas, and the record of a new partition.

Rack-aware placement as in Kafka's KRaft controller (KIP-36 adapted): racks in name order from a
random one, each with its brokers in random order. Every partition starts one rack further, its
leader is an unfenced broker, the other replicas rotate over the racks. After as many partitions as
unfenced brokers everything is shuffled again, so that no two brokers always share partitions.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from kraft_wire.controller.directories import default_directory
from kraft_wire.controller.refusal import Refusal
from kraft_wire.metadata.image import BrokerImage, MetadataImage
from kraft_wire.metadata.records import VersionedRecord, partition_record_version
from kraft_wire.model import RandomSource, Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.partition_record import PartitionRecord

__all__ = ["new_partition", "nobody_leads", "place", "read_assignment", "read_chosen"]

T = TypeVar("T")


def place(
    brokers: Mapping[int, BrokerImage], partitions: int, replicas: int, random_source: RandomSource
) -> list[list[int]]:
    """Choose the replicas of each new partition, the leader first.

    Errors, all INVALID_REPLICATION_FACTOR, first match wins: no broker could lead, too few brokers.
    """
    assert partitions > 0, partitions
    assert replicas > 0, replicas
    candidates = {number: broker for number, broker in brokers.items() if _takes_replicas(broker)}
    unfenced_count = sum(1 for broker in candidates.values() if not broker.fenced)
    if not unfenced_count:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "All brokers are currently fenced, or have all their log directories cordoned.",
        )
    if replicas > len(candidates):
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The target replication factor of {replicas} cannot be reached because only "
            f"{len(candidates)} broker(s) are registered or some brokers have all their log "
            "directories cordoned.",
        )
    assert unfenced_count <= len(candidates) <= len(brokers), candidates
    placed: list[list[int]] = []
    while len(placed) < partitions:
        racks = _shuffled_racks(candidates, random_source)
        stretch = min(unfenced_count, partitions - len(placed))
        placed += [_one_partition(racks, turn, replicas) for turn in range(stretch)]
    assert all(len(set(chosen)) == replicas for chosen in placed)
    return placed


def read_assignment(
    brokers: Mapping[int, BrokerImage], replicas: Sequence[int], replicas_count: int | None
) -> list[int]:
    """Check replicas that a client chose; INVALID_REPLICA_ASSIGNMENT says what is wrong."""
    problem = None
    if not replicas:
        problem = "an empty replica list."
    for before, broker in zip([None, *sorted(replicas)], sorted(replicas), strict=False):
        if broker == before:
            problem = f"the broker {broker} more than once."
        elif broker not in brokers:
            problem = f"broker {broker}, but no such broker is registered."
        if problem is not None:
            break
    if problem is None and replicas_count not in (None, len(replicas)):
        problem = (
            f"a partition with {len(replicas)} replica(s), but this is not consistent with "
            f"previous partitions, which have {replicas_count} replica(s)."
        )
    if problem is not None:
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"The manual partition assignment includes {problem}",
        )
    assert len(set(replicas)) == len(replicas), replicas
    return list(replicas)


def read_chosen(
    brokers: Mapping[int, BrokerImage],
    number: int,
    replicas: Sequence[int],
    replicas_count: int | None,
) -> list[int]:
    """Check the replicas of a new partition that a client chose: one of them must be active."""
    chosen = read_assignment(brokers, replicas, replicas_count)
    assert chosen, number
    if not any(brokers[broker].active for broker in chosen):
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "All brokers specified in the manual partition assignment for partition "
            f"{number} are fenced or in controlled shutdown.",
        )
    return chosen


def nobody_leads(replicas: int) -> Refusal:
    """Return the refusal of a partition whose placed brokers are all out of service."""
    assert replicas > 0, "the assignment lists no broker"
    return Refusal(
        ErrorCode.INVALID_REPLICATION_FACTOR,
        f"Unable to replicate the partition {replicas} time(s): All brokers are currently "
        "fenced or in controlled shutdown.",
    )


def new_partition(
    image: MetadataImage, topic_id: Uuid, number: int, replicas: Sequence[int]
) -> VersionedRecord | None:
    """Return the record of a new partition, or None if none of its replicas is active."""
    assert number >= 0, number
    assert replicas, number
    isr = [broker for broker in replicas if image.brokers[broker].active]
    if not isr:
        return None
    version = partition_record_version(image.metadata_version)
    record = PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=list(replicas),
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
    )
    if version >= 1:
        record.directories = [default_directory(image.brokers[broker]) for broker in replicas]
    assert record.leader in record.replicas
    assert len(record.directories) in (0, len(record.replicas)), record
    return VersionedRecord(record, version)


def _takes_replicas(broker: BrokerImage) -> bool:
    """Return whether a broker may get replicas: a fenced one may return."""
    if broker.in_controlled_shutdown and not broker.fenced:
        return False
    cordoned = broker.cordoned_log_dirs or ()
    return not broker.log_dirs or any(each not in cordoned for each in broker.log_dirs)


class _Rack:
    """One rack's brokers, assigned in rotation: unfenced ones, then fenced ones."""

    def __init__(self, brokers: Sequence[BrokerImage], random_source: RandomSource) -> None:
        self.unfenced = _shuffled(
            [each.broker_id for each in brokers if not each.fenced], random_source
        )
        self.fenced = _shuffled([each.broker_id for each in brokers if each.fenced], random_source)

    def deal(self, turn: int, taken: Sequence[int], *, may_be_fenced: bool) -> int | None:
        """Return the next broker that is not taken yet, None without one."""
        assert turn >= 0, turn
        rotated = _rotated(self.unfenced, turn)
        if may_be_fenced:
            rotated = rotated + _rotated(self.fenced, turn)
        return next((broker for broker in rotated if broker not in taken), None)


def _one_partition(racks: Sequence[_Rack], turn: int, replicas: int) -> list[int]:
    """Replicas of the partition that begins at rack number `turn` (modulo their count)."""
    assert turn >= 0, turn
    order = _rotated(racks, turn)
    round_number = turn // len(racks)
    leader = next(
        broker
        for rack in order
        if (broker := rack.deal(round_number, (), may_be_fenced=False)) is not None
    )
    chosen = [leader]
    position = next(n for n, rack in enumerate(order) if leader in rack.unfenced) + 1
    while len(chosen) < replicas:
        broker = order[position % len(order)].deal(round_number, chosen, may_be_fenced=True)
        if broker is not None:
            chosen.append(broker)
        position += 1
        assert len(set(chosen)) == len(chosen), chosen
        assert position <= len(order) * (replicas + 1), "a rack was chosen repeatedly"
    return chosen


def _shuffled_racks(brokers: Mapping[int, BrokerImage], random_source: RandomSource) -> list[_Rack]:
    assert brokers, "no broker can take the replica"
    by_rack: dict[str, list[BrokerImage]] = {}
    for number in sorted(brokers):
        by_rack.setdefault(brokers[number].rack or "", []).append(brokers[number])
    racks = [_Rack(by_rack[name], random_source) for name in sorted(by_rack)]
    return _rotated(racks, random_source.below(len(racks)))


def _shuffled(numbers: list[int], random_source: RandomSource) -> list[int]:
    for last in range(len(numbers) - 1, 0, -1):
        other = random_source.below(last + 1)
        assert 0 <= other <= last, other
        numbers[last], numbers[other] = numbers[other], numbers[last]
    return numbers


def _rotated(items: Sequence[T], by: int) -> list[T]:
    if not items:
        return []
    start = by % len(items)
    assert 0 <= start < len(items), start
    return [*items[start:], *items[:start]]
