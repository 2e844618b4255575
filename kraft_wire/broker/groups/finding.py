"""Finding a group of the kind that a request is about, with Kafka's words if it is another."""

from typing import TypeVar

from kraft_wire.broker.groups.group_types import GroupType, OtherGroup
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["find_group_of"]

G = TypeVar("G", bound=OtherGroup)


def find_group_of(
    form: type[G], kind: GroupType, shard: GroupShard, group_id: str, missing: str
) -> G | Refusal:
    """Return a group; an empty group of another kind is in the way, too.

    `missing` is the message if the id is free. Error: GROUP_ID_NOT_FOUND.
    """
    found = shard.other_groups.get(group_id)
    if isinstance(found, form):
        return found
    is_free = found is None and group_id not in shard.groups
    words = missing if is_free else f"Group {group_id} is not a {kind.value} group."
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, words)
