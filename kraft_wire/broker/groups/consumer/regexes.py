"""Regular expressions of a group: what a heartbeat changes, and when they are evaluated again.

A heartbeat only checks a new expression. All expressions of a group are evaluated together, by a
timer of their own (`regex_evaluation`), and the result is written as an operation of its own: an
expression without a result matches nothing.
"""

from dataclasses import dataclass
from typing import Final

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.epochs import epoch_after
from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.member import ConsumerMember
from kraft_wire.broker.groups.consumer.records import (
    epoch_record,
    regex_record,
    regex_tombstone,
)
from kraft_wire.broker.groups.consumer.regex_engine import matcher_of
from kraft_wire.broker.groups.consumer.regex_evaluation import MayDescribe, RegexEvaluation
from kraft_wire.broker.groups.consumer.subscriptions import subscriber_count, subscriptions
from kraft_wire.broker.groups.consumer.timers import ConsumerTimer, ConsumerTimerKind
from kraft_wire.broker.groups.consumer.write import write
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["RegexChange", "evaluate_regexes", "regex_change"]

_SLICE_PAUSE_MS: Final = 1
"""Between two slices of an evaluation requests are served."""
_PAUSE_MS: Final = 10_000
"""Shortest time between two evaluations of a group."""


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

    def begin(
        self,
        shard: GroupShard,
        group: ConsumerGroup,
        may_describe: MayDescribe | None,
        at: ClockReading,
    ) -> None:
        """Have the expressions evaluated after this heartbeat, with the rights of its sender."""
        if self.to_evaluate:
            image = shard.env.image()
            group.evaluation = RegexEvaluation(self.to_evaluate, image, may_describe)
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
    if not len(group.regex_users) and not new:
        return ()
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
    if not used or group.evaluation is not None or not (is_first or is_used):
        return False
    newest = shard.env.topic_versions.newest(shard.env.image())
    refresh_ms = shard.env.settings().group_consumer_regex_refresh_interval_ms
    last = next(group.regexes.values(), None)
    if last is None:
        return True
    if at.wall_ms <= last.timestamp_ms + _PAUSE_MS:
        return False
    return (
        is_first
        or len(used) != len(group.regexes)
        or last.image_version < newest
        or at.wall_ms > last.timestamp_ms + refresh_ms
    )


def evaluate_regexes(shard: GroupShard, group: ConsumerGroup, at: ClockReading) -> None:
    """Match topics, and write the results of all; new topics raise the group's epoch."""
    evaluation = group.evaluation
    assert evaluation is not None, group.group_id
    if not evaluation.advance(at.wall_ms):
        timer = ConsumerTimer(ConsumerTimerKind.REGEX, group.group_id, "")
        shard.timers.schedule(timer, at.now_ms + _SLICE_PAUSE_MS)
        return
    group.evaluation = None
    found = evaluation.results()
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
        records.append(epoch_record(group.group_id, epoch_after(group.epoch), metadata_hash))
        has_changed = True
    if write(shard, group, records, at).error is ErrorCode.NONE and has_changed:
        group.note_metadata(topics.names, image)
