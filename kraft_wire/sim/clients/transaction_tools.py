"""A tool that lists and describes transactional ids (KIP-664, KIP-994, KIP-1152).

S77: it is shown what the newest committed record of an id says. An id is judged if that record was
the same before the request and after the answer, and if the coordinator has read nothing that is
not committed: a new leader reads its log to the end, as in Kafka.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, cast

from kraft_wire.broker.metadata.metadata_cache import TRANSACTION_TOPIC
from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.clients.coordinated_client import WRONG_NODE
from kraft_wire.sim.clients.tool import Tool
from kraft_wire.sim.judge.transactions.id_records import PREPARED, IdRecord
from kraft_wire.sim.judge.transactions.watch import TransactionWatch
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.storage.log import Log
from kraft_wire.wire.generated.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kraft_wire.wire.message import Message

__all__ = ["TransactionTool"]

_INVARIANT: Final = "S77 IdsAreShown"
_STATES: Final = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"),
)
"""By the number in a record."""
_PATTERNS: Final = (None, None, "", "transactor-.*", ".*-0", "[a-z]+-[0-9]", "aged|keyed-0", "x+")
_UNKNOWN: Final = "absent"


class TransactionTool(Tool):
    """Asks the coordinators of transactions in turns."""

    coordinator_type = 1
    coordinator_topic = TRANSACTION_TOPIC

    def __init__(
        self, context: ClientContext, watch: TransactionWatch, number: int, topic: str
    ) -> None:
        super().__init__(context, number, topic, _UNKNOWN)
        self._ids = watch.ids.ids

    def steps(self) -> tuple[Callable[[], None], ...]:
        return (self._describe, self._list)

    def _wrong(self, node_id: int, *facts: object) -> None:
        raise Violation(_INVARIANT, node_id, *facts)

    def _same_as(self, before: dict[str, IdRecord], name: str) -> IdRecord | None:
        """Return the record that an id had all the time."""
        record = self._ids.get(name)
        return record if record is not None and before.get(name) == record else None

    def _has_read_more(self, node_id: int) -> bool:
        """Whether a broker has read uncommitted records when it began to lead, or does not run."""
        node = self.stage.machines[node_id].node
        if node is None:
            return True
        for truth in self.context.truth.of_topic(TRANSACTION_TOPIC):
            partition = node.broker.partitions.get((truth.topic, truth.number))
            if partition is None or partition.offline or not partition.is_leader:
                continue
            log = cast(Log, partition.log)
            own = [start for epoch, start in log.epochs.entries if epoch == partition.leader_epoch]
            if log.high_watermark < (own[0] if own else log.log_end_offset):
                return True
        return False

    def _describe(self) -> None:
        before = dict(self._ids)
        names = [self.random.choice([*before, _UNKNOWN]), _UNKNOWN]

        def answered(node_id: int, response: Message | None) -> None:
            if not isinstance(response, DescribeTransactionsResponse):
                self.again()
                return
            known, unknown = response.transaction_states
            if ErrorCode(unknown.error_code) in WRONG_NODE:
                self.coordinator = None
                self.again()
                return
            if unknown.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                self._wrong(node_id, "an unknown id is shown as", unknown)
            record = self._same_as(before, names[0])
            if record is not None and not self._has_read_more(node_id):
                self.context.judge.looked[_INVARIANT] += 1
                partitions = {(topic.topic, n) for topic in known.topics for n in topic.partitions}
                shown = (
                    known.error_code,
                    known.transaction_state,
                    known.transaction_timeout_ms,
                    (known.producer_id, known.producer_epoch),
                    partitions,
                )
                wanted = (
                    0,
                    _STATES[record.state],
                    record.timeout_ms,
                    record.producer,
                    set(record.partitions),
                )
                if record.state in PREPARED and partitions <= record.partitions:
                    wanted = (*wanted[:-1], partitions)  # less those that have their marker
                if shown != wanted:
                    self._wrong(node_id, names[0], "is shown as", shown, "not", wanted)
            self.later(self.think_us)

        self.ask_coordinator(DescribeTransactionsRequest(transactional_ids=names), answered)

    def _list(self) -> None:
        before = dict(self._ids)
        version = self.random.randint(0, ListTransactionsRequest.MAX_VERSION)
        states = self.random.choice(((), (), (self.random.choice(_STATES),), _STATES[:3]))
        producers = [record.producer[0] for record in before.values()]
        producer_ids = self.random.choice(
            ([], [], self.random.sample(producers, len(producers) // 2))
        )
        request = ListTransactionsRequest(
            state_filters=list(states), producer_id_filters=producer_ids
        )
        pattern = self.random.choice(_PATTERNS) if version >= 2 else None
        request.transactional_id_pattern = pattern

        def is_wanted(name: str, record: IdRecord) -> bool:
            return (
                (not states or _STATES[record.state] in states)
                and (not producer_ids or record.producer[0] in producer_ids)
                and (not pattern or re.fullmatch(pattern, name) is not None)
            )

        def answered(node_id: int, response: Message | None) -> None:
            if not isinstance(response, ListTransactionsResponse):
                self.again()
                return
            if response.error_code:
                self.coordinator = None
                self.again()
                return
            shown = {
                each.transactional_id: (each.producer_id, each.transaction_state)
                for each in response.transaction_states
            }
            judged = () if self._has_read_more(node_id) else dict.fromkeys((*shown, *before))
            for name in judged:
                record = self._same_as(before, name)
                if record is None:
                    continue
                self.context.judge.looked[_INVARIANT] += 1
                wanted = (record.producer[0], _STATES[record.state])
                if shown.get(name) != (wanted if is_wanted(name, record) else None):
                    facts = ("filters", states, producer_ids, pattern)
                    self._wrong(node_id, name, record, "is listed as", shown.get(name), *facts)
            self.later(self.think_us)

        self.ask_coordinator(request, answered, version)
