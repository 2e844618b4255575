"""The answer to OffsetCommit and TxnOffsetCommit as it grows, in the order of Kafka's builders.

Refused partitions come first. If there are any, the others of a topic end up behind them.
"""

from collections.abc import Sequence

from kraft_wire.broker.groups.offsets.commit import failed_topics
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequestTopic,
    OffsetCommitResponseTopic,
)

__all__ = ["CommitAnswer"]


class CommitAnswer:
    """The topics of an answer; `by_id`: topics are the same by their id, not by their name."""

    def __init__(self, *, by_id: bool) -> None:
        self.by_id = by_id
        self.topics: list[OffsetCommitResponseTopic] = []
        self._known: dict[Uuid | str, OffsetCommitResponseTopic] = {}

    def refuse(self, topic: OffsetCommitRequestTopic, error: ErrorCode) -> None:
        """Answer every partition of a topic with an error; one without any is listed, too."""
        (refused,) = failed_topics([topic], error)
        self._merge(refused)

    def with_topics(
        self, parts: Sequence[OffsetCommitResponseTopic]
    ) -> list[OffsetCommitResponseTopic]:
        """Return the answer, complete with these; as requested where nothing was refused."""
        if not self.topics:
            return list(parts)
        for part in parts:
            self._merge(part)
        return self.topics

    def _merge(self, part: OffsetCommitResponseTopic) -> None:
        """Add a topic's partitions to those already answered."""
        key = part.topic_id if self.by_id else part.name
        topic = self._known.get(key)
        if topic is None:
            self._known[key] = part
            self.topics.append(part)
        else:
            topic.partitions += part.partitions
