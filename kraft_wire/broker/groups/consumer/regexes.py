"""Regular expressions of a group: what a heartbeat changes, and when they are evaluated again.

A heartbeat only checks a new expression. All expressions of a group are evaluated together, by a
timer of their own, and the result is written as an operation of its own: an expression without a
result matches nothing.
"""

from dataclasses import dataclass
from typing import Final

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.member import ConsumerMember
from kraft_wire.broker.groups.consumer.records import (
    epoch_record,
    regex_record,
    regex_tombstone,
)
from kraft_wire.broker.groups.consumer.refusal import Refusal
from kraft_wire.broker.groups.consumer.regex_engine import matcher_of
from kraft_wire.broker.groups.consumer.results import ResolvedRegex
from kraft_wire.broker.groups.consumer.subscriptions import subscriber_count, subscriptions
from kraft_wire.broker.groups.consumer.timers import ConsumerTimer, ConsumerTimerKind
from kraft_wire.broker.groups.consumer.write import write
from kraft_wire.broker.groups.java_collections import JavaHashMap, java_hash_set
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["RegexChange", "evaluate_regexes", "regex_change"]

_PAUSE_MS: Final = 10_000
"""Shortest time between two evaluations of a group."""
_REFRESH_MS: Final = 600_000


@dataclass(slots=True)
class RegexChange:
    """What a heartbeat changes about the regular expressions of its group."""

    is_new: bool = False
    """Whether the member uses another one, or none any more."""
    changes_topics: bool = False
    """Whether that changes the topics of the group now, not only when it is evaluated."""
    unused: tuple[str, ...] = ()
    """Expressions that no member uses any more."""
    to_evaluate: tuple[str, ...] = ()

    def tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        """Return the tombstones of what is not used any more."""
        return [regex_tombstone(group_id, regex) for regex in self.unused]

    def begin(self, shard: GroupShard, group: ConsumerGroup, at: ClockReading) -> None:
        """Have the expressions evaluated after this heartbeat."""
        if self.to_evaluate:
            group.regexes_to_evaluate = self.to_evaluate
            timer = ConsumerTimer(ConsumerTimerKind.REGEX, group.group_id, "")
            shard.timers.schedule(timer, at.now_ms)


def regex_change(
    shard: GroupShard,
    group: ConsumerGroup,
    former: ConsumerMember,
    member: ConsumerMember,
    at: ClockReading,
) -> RegexChange | Refusal:
    """Compare a member's regular expression with the one before; INVALID_REGULAR_EXPRESSION."""
    old, new = former.subscribed_topic_regex, member.subscribed_topic_regex
    change = RegexChange()
    is_first = False
    if old != new:
        change.is_new = True
        if old and subscriber_count(group, old) == 1:
            change.unused = (old,)
        if not new:
            change.changes_topics = bool(old)
        elif not subscriber_count(group, new):
            matcher = matcher_of(new)
            if isinstance(matcher, Refusal):
                return matcher
            is_first = True
        else:
            change.changes_topics = new in group.regexes
    used = _used(group, old, new)
    if _is_evaluation_due(shard, group, used, at, is_first=is_first):
        change.to_evaluate = used
    return change


def _used(group: ConsumerGroup, old: str | None, new: str | None) -> tuple[str, ...]:
    """Return the expressions of all members, with one member as it will be."""
    counts = group.regex_users.copy()
    if old:
        counts.add(old, -1)
    if new:
        counts.add(new, 1)
    return tuple(counts)


def _is_evaluation_due(
    shard: GroupShard,
    group: ConsumerGroup,
    used: tuple[str, ...],
    at: ClockReading,
    *,
    is_first: bool,
) -> bool:
    is_used = bool(len(group.regex_users))
    if not used or group.regexes_to_evaluate or not (is_first or is_used):
        return False
    newest = shard.env.topic_versions.newest(shard.env.image())
    last = next(group.regexes.values(), None)
    if last is None:
        return True
    if at.wall_ms <= last.timestamp_ms + _PAUSE_MS:
        return False
    return (
        is_first
        or len(used) != len(group.regexes)
        or last.image_version < newest
        or at.wall_ms > last.timestamp_ms + _REFRESH_MS
    )


def evaluate_regexes(shard: GroupShard, group: ConsumerGroup, at: ClockReading) -> None:
    """Match all topics, and write the results; new topics raise the group's epoch."""
    regexes, group.regexes_to_evaluate = group.regexes_to_evaluate, ()
    found = _matched(shard, regexes, at)
    records: list[CoordinatorRecord] = []
    resolved = dict(group.regexes.items())
    has_changed = False
    for regex, result in found.items():
        if not subscriber_count(group, regex):
            continue
        before = resolved.get(regex)
        has_changed |= sorted(before.topics if before else ()) != sorted(result.topics)
        resolved[regex] = result
        records.append(regex_record(group.group_id, regex, result))
    topics = subscriptions(group.members.values(), resolved)
    image = shard.env.image()
    metadata_hash = shard.env.topic_hashes.group_hash(topics.names, image)
    if has_changed or metadata_hash != group.metadata_hash:
        records.append(epoch_record(group.group_id, group.epoch + 1, metadata_hash))
        has_changed = True
    if write(shard, group, records, at).error is ErrorCode.NONE and has_changed:
        group.note_metadata(topics.names, image)


def _matched(
    shard: GroupShard, regexes: tuple[str, ...], at: ClockReading
) -> JavaHashMap[str, ResolvedRegex]:
    image = shard.env.image()
    shard.env.topic_versions.newest(image)
    names = list(image.topics_by_name)
    found: JavaHashMap[str, ResolvedRegex] = JavaHashMap(len(regexes))
    for regex in java_hash_set(regexes, len(regexes)):
        matcher = matcher_of(regex)
        topics = () if isinstance(matcher, Refusal) else tuple(filter(matcher, names))
        found[regex] = ResolvedRegex(topics, image.offset, at.wall_ms)
    return found
