"""The steps that the descriptions of consumer, share and streams groups have in common.

KIP-848, KIP-932 and KIP-1071 give their Describe requests the same errors in the same order. The
answer waits until the ISR has what it shows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.groups.group_types import ALL_GROUP_OPERATIONS, OtherGroup
from kraft_wire.broker.groups.group_writes import uncommitted_end
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.response_budget import ResponseBudget
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["Described", "Description", "describe_groups"]


class Described(Protocol):
    """A group in the answer."""

    group_id: str
    error_code: int
    authorized_operations: int


class _Request(Protocol):
    group_ids: list[str]
    include_authorized_operations: bool


G = TypeVar("G", bound=OtherGroup)
D = TypeVar("D", bound=Described)
R = TypeVar("R", bound=Message)


@dataclass(frozen=True, slots=True)
class Description(Generic[G, D, R]):
    """What one kind of groups adds."""

    is_served: bool
    """Whether the kind is switched on."""
    find: Callable[[GroupShard, str], G | Refusal]
    show: Callable[[G], D]
    fail: Callable[[str, ErrorCode, str | None], D]
    """Makes an answer of only an error."""
    size_bytes: Callable[[D], int]
    """Returns the approximate size of a group in the answer."""
    answer: Callable[[list[D]], R]


def describe_groups(
    broker: "Broker", context: RequestContext, request: _Request, kind: Description[G, D, R]
) -> R | Parked:
    """Describe groups of one kind; an answer beyond its room ends the connection.

    Errors per group, first match wins: UNSUPPORTED_VERSION (the kind is switched off),
    INVALID_GROUP_ID, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, those of `find`.
    """
    room = ResponseBudget(broker.settings, "groups", context.api_version)
    described: list[D] = []
    awaited: dict[int, int] = {}
    for group_id in sorted(request.group_ids, key=bool):  # empty ids come first
        group = _describe(broker, group_id, awaited, kind)
        room.take(kind.size_bytes(group))
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = ALL_GROUP_OPERATIONS
        described.append(group)
    if not awaited:
        return kind.answer(described)

    def answered(errors: Mapping[int, ErrorCode]) -> R:
        return kind.answer(_after_waiting(broker, described, errors, kind))

    return broker.groups.env.commits.answer_when_committed(context, awaited, answered)


def _describe(
    broker: "Broker", group_id: str, awaited: dict[int, int], kind: Description[G, D, R]
) -> D:
    """Describe a group; `awaited` takes the newest record of it that the ISR does not have."""
    if not kind.is_served:
        return kind.fail(group_id, ErrorCode.UNSUPPORTED_VERSION, None)
    if not group_id:
        return kind.fail(group_id, ErrorCode.INVALID_GROUP_ID, None)
    shard = broker.groups.shard_of(group_id)
    if not isinstance(shard, GroupShard):
        return kind.fail(group_id, shard, None)
    group = kind.find(shard, group_id)
    if isinstance(group, Refusal):
        return kind.fail(group_id, group.error, group.message)
    end = uncommitted_end(shard, group)
    if end is not None:
        partition = shard.log.partition
        awaited[partition] = max(end, awaited.get(partition, 0))
    return kind.show(group)


def _after_waiting(
    broker: "Broker",
    described: Sequence[D],
    errors: Mapping[int, ErrorCode],
    kind: Description[G, D, R],
) -> list[D]:
    """Replace the groups of partitions that the coordinator lost while the answer waited."""

    def kept(group: D) -> D:
        error = errors.get(broker.groups.partition_of(group.group_id))
        if error is None or group.error_code != ErrorCode.NONE:
            return group
        return kind.fail(group.group_id, error, None)

    return [kept(each) for each in described]
