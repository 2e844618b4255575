"""A task's share of a cluster's topics, if several tasks replay one metadata log.

The states of a partition depend only on its own records and its topic's (KIP-631). So each task
reads the whole log, and skips the partition records of other tasks' topics. Topics are assigned in
turn as the log creates them: every task reads the same log, so the tasks need no communication.
"""

from collections.abc import Iterable, Iterator

from kraft_wire.metadata.records import PARTITION_HEADS, TOPIC_ID, decode_message
from kraft_wire.model import Uuid
from kraft_wire.spark.kraftlog.logged_batches import Entry
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.partition_record import PartitionRecord
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.message import Message

__all__ = ["TopicShare"]

_OF_PARTITIONS = (PartitionRecord, PartitionChangeRecord)


class TopicShare:
    """The topics of task `number` of `tasks`; the first task has records without a topic."""

    __slots__ = ("_owners", "number", "tasks")

    def __init__(self, number: int = 0, tasks: int = 1) -> None:
        assert 0 <= number < tasks, (number, tasks)
        self.number = number
        self.tasks = tasks
        self._owners: dict[bytes, int] = {}

    @property
    def is_first(self) -> bool:
        """Whether brokers, configs and other records without a topic are in it."""
        return self.number == 0

    def has(self, topic_id: Uuid) -> bool:
        """Whether a topic is in it; a topic that was never created is in all, and all refuse it."""
        return self._owners.get(topic_id, self.number) == self.number

    def messages(self, entries: Iterable[Entry]) -> Iterator[tuple[int, int, Message]]:
        """Yield offset, time and message of the records that are not another task's.

        MetadataFault for a value that is not exactly one record.
        """
        owners, number = self._owners, self.number
        for offset, timestamp_ms, value in entries:
            is_plain = value[:3] in PARTITION_HEADS
            if is_plain and owners.get(value[TOPIC_ID], number) != number:
                continue  # bytes at known positions decide, without decoding
            record = decode_message(value)
            if not is_plain:
                if isinstance(record, TopicRecord):
                    owners.setdefault(record.topic_id, len(owners) % self.tasks)
                elif isinstance(record, _OF_PARTITIONS) and not self.has(record.topic_id):
                    continue
            yield offset, timestamp_ms, record
