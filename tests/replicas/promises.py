"""What producers and a consumer were told, held against what is read back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tests.replicas.load import PENDING, SOMEWHERE, Kind, Load, numbers_in
from tests.replicas.reading import Stored

SHOWN_MAX = 5

WhoWrote = Callable[[int, int], tuple[int, int]]
"""Producer id and epoch of the batch that holds an offset, by partition and offset."""


@dataclass
class Written:
    """What became of one producer's records."""

    name: str
    sent: int
    acknowledged: int
    stored: int = 0
    lost: int = 0
    """Acknowledged, and not there, or not where it was acknowledged."""
    duplicated: int = 0
    """Copies behind the first one, without those that the client itself wrote again."""
    repeated: int = 0
    """Copies that the client itself wrote again, under another epoch of its id."""
    out_of_order: int = 0


def judge_writer(
    load: Load, stored: Mapping[int, Stored], who_wrote: WhoWrote
) -> tuple[Written, list[str]]:
    """Look for every record that a producer was promised.

    Those of idempotent ones stand there once and in order; where the client itself may write one
    again (`Kind.may_repeat`), once under each epoch of its id. Another's may stand there twice, and
    in another order: while a request to the old leader is under way, librdkafka sends the next one
    to the new leader.
    """
    written = Written(load.kind.name, load.sent, load.acknowledged)
    problems: list[str] = []
    for partition, found in stored.items():
        places = _places(load.order.number, found)
        written.stored += sum(map(len, places.values()))
        problems += _missing(load, partition, places, written)
        copies = _copied(load.kind, partition, places, who_wrote, written)
        late = _late(partition, places, written)
        problems += [*copies, *late] if load.kind.is_idempotent else []
    return written, shown([f"{written.name}: {each}" for each in problems])


def _places(writer: int, found: Stored) -> dict[int, list[int]]:
    """The offsets of a writer's records in a partition by number, as they come first."""
    places: dict[int, list[int]] = {}
    for offset, (who, number) in enumerate(zip(found.writers, found.numbers, strict=True)):
        if who == writer:
            places.setdefault(number, []).append(offset)
    return places


def _missing(
    load: Load, partition: int, places: Mapping[int, Sequence[int]], written: Written
) -> list[str]:
    """Acknowledged records that are not where they should be."""
    problems = []
    for number in numbers_in(partition, load.order.partitions, load.sent):
        offset, at = load.offsets[number], places.get(number, [])
        if offset == PENDING or (offset == SOMEWHERE and at) or offset in at:
            continue
        written.lost += 1
        where = "somewhere" if offset == SOMEWHERE else f"at {offset}"
        problems.append(
            f"record {number} of partition {partition} was acknowledged {where}, is at {list(at)}"
        )
    return problems


def _copied(
    kind: Kind,
    partition: int,
    places: Mapping[int, Sequence[int]],
    who_wrote: WhoWrote,
    written: Written,
) -> list[str]:
    """Records that are there more often than their client wrote them."""
    problems = []
    for number, at in places.items():
        if len(at) == 1:
            continue
        writers = {who_wrote(partition, each) for each in at}
        is_one_producer = len({producer_id for producer_id, _ in writers}) == 1
        repeated = len(writers) - 1 if kind.may_repeat and is_one_producer else 0
        duplicated = len(at) - 1 - repeated
        written.repeated += repeated
        written.duplicated += duplicated
        if duplicated:
            problems.append(f"record {number} of partition {partition} is at offsets {list(at)}")
    return problems


def _late(partition: int, places: Mapping[int, Sequence[int]], written: Written) -> list[str]:
    """Records whose first copy is behind that of a later one."""
    late = [
        f"record {number} of partition {partition} is late, at {places[number][0]}"
        for number, highest in zip(places, accumulate(places, max), strict=True)
        if number < highest
    ]
    written.out_of_order += len(late)
    return late


def judge_read_along(along: Mapping[int, Stored], stored: Mapping[int, Stored]) -> list[str]:
    """What a consumer was shown meanwhile is what is there in the end."""
    problems = []
    for partition, found in stored.items():
        seen = along[partition]
        if seen.end > found.end:
            gone = seen.end - found.end
            problems.append(f"partition {partition} showed {gone} records behind {found.end}")
        for offset, (left, right) in enumerate(zip(seen.checksums, found.checksums, strict=False)):
            if left != right:
                problems.append(
                    f"partition {partition} showed record {seen.writers[offset]}:"
                    f"{seen.numbers[offset]} at {offset}, where {found.writers[offset]}:"
                    f"{found.numbers[offset]} is now"
                )
    return shown(problems)


def shown(problems: list[str]) -> list[str]:
    """The first few, and how many there are."""
    more = len(problems) - SHOWN_MAX
    return problems[:SHOWN_MAX] + ([f"… and {more} more"] if more > 0 else [])
