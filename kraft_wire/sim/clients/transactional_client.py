"""A client with a transactional id: it finds its coordinator, gets an identity, and may lose it.

Two of them may share an id: each that begins fences the other. Errors are drawn into three kinds as
Kafka's clients do: those after which the same is asked again, those after which the transaction
must be aborted, and those after which the producer is of no use any more.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Final

from kraft_wire.broker.metadata.metadata_cache import OFFSETS_TOPIC, TRANSACTION_TOPIC
from kraft_wire.sim.clients.broker_client import BrokerClient
from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.judge.answer_fields import judge_coordinator
from kraft_wire.sim.judge.transactions.history import TransactionHistory
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kraft_wire.wire.generated.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kraft_wire.wire.message import Message

__all__ = ["ABORTABLE", "RETRIABLE", "TransactionalClient"]

_TRANSACTION: Final = 1
_GROUP: Final = 0
_INIT_VERSION: Final = 5
_CONTROL_TIMEOUT_US: Final = 3_000_000
_RESTARTS_US: Final = 3_600_000
_HASTE: Final = 4

_WRONG_NODE: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
RETRIABLE: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.OPERATION_NOT_ATTEMPTED,
    *_WRONG_NODE,
)
ABORTABLE: Final = (
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
)
"""Of Produce."""
_FATAL: Final = (
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
)
"""Of coordinators."""


class TransactionalClient(BrokerClient):
    """A client with a transactional id; subclasses define its use."""

    def __init__(
        self,
        context: ClientContext,
        history: TransactionHistory,
        number: int,
        topic: str,
        transactional_id: str,
    ) -> None:
        super().__init__(context, number, topic)
        self.transactions = history
        self.transactional_id = transactional_id
        self.producer: tuple[int, int] | None = None
        """Producer id and epoch."""
        self.wants_epoch = False
        """Whether it must raise its own epoch before it continues (KIP-360)."""
        self.incarnation = 0
        self._coordinators: dict[int, int] = {}
        """Key type -> the broker that it takes for the coordinator."""

    def later(self, mean_us: int) -> None:
        """Continue sooner than other clients do: a transaction takes many steps."""
        super().later(max(mean_us // _HASTE, 1))

    def coordinator(self, kind: int, key: str, then: Callable[[int], None]) -> None:
        """Have something done with a coordinator, once it is found."""
        known = self._coordinators.get(kind)
        if known is not None:
            then(known)
            return
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        asked = self.some_broker()
        topic = TRANSACTION_TOPIC if kind == _TRANSACTION else OFFSETS_TOPIC

        def found(response: Message | None) -> None:
            if isinstance(response, FindCoordinatorResponse):
                answer = response.coordinators[0]
                if answer.error_code == 0 and answer.node_id >= 0:
                    judge_coordinator(asked, answer, self.context.truth.of_topic(topic))
                    self._coordinators[kind] = answer.node_id
                    self.step()
                    return
            self.again()

        self.ask(asked, request, found)

    def ask_coordinator(
        self, request: Message, version: int, answered: Callable[[int, Message], None]
    ) -> None:
        """Ask the coordinator of the transactional id; without an answer it is looked for again."""
        self.coordinator(
            _TRANSACTION,
            self.transactional_id,
            lambda node_id: self._ask(_TRANSACTION, node_id, request, version, answered),
        )

    def ask_group_coordinator(
        self, group: str, request: Message, version: int, answered: Callable[[int, Message], None]
    ) -> None:
        """Ask the coordinator of a group likewise."""
        self.coordinator(
            _GROUP, group, lambda node_id: self._ask(_GROUP, node_id, request, version, answered)
        )

    def _ask(
        self,
        kind: int,
        node_id: int,
        request: Message,
        version: int,
        answered: Callable[[int, Message], None],
    ) -> None:
        def got(response: Message | None) -> None:
            if response is None:
                self._coordinators.pop(kind, None)
                self.unanswered_request(request)
                self.again()
            else:
                answered(node_id, response)

        self.ask(node_id, request, got, _CONTROL_TIMEOUT_US, version)

    def unanswered_request(self, request: Message) -> None:
        """The result of a request to a coordinator is unknown."""

    def refused(self, node_id: int, code: int, request: str) -> bool:
        """Handle a coordinator's error; false without an error."""
        error = ErrorCode(code)
        if error is ErrorCode.NONE:
            return False
        self.context.history.counts[f"{request} {error.name}"] += 1
        if error in RETRIABLE:
            if error in _WRONG_NODE:
                self._coordinators.clear()
            self.again()
        elif error in _FATAL:
            self.transactions.refused(node_id, self.transactional_id, self.producer, error)
            self.restart()
        elif error is ErrorCode.TRANSACTION_ABORTABLE:
            self.must_abort()
            self.later(self.think_us)
        else:
            self.transactions.unexpected(node_id, request, error)
        return True

    @abstractmethod
    def must_abort(self) -> None:
        """The transaction cannot be committed any more."""

    def restart(self) -> None:
        """Be of no use any more: another producer takes the place of this one, after a while."""
        self.incarnation += 1
        self.producer = None
        self.wants_epoch = False
        self.lose()
        self.later(50_000 if self.is_done else _RESTARTS_US)

    def lose(self) -> None:
        """Drop the transaction that was in progress."""

    # -- identity --------------------------------------------------------------------------------

    def initialize(self) -> None:
        """Ask for an identity, or for the next epoch of the own one."""
        expected = self.producer if self.wants_epoch and self.producer is not None else (-1, -1)
        data = self.stage.setup.data
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=data.transaction_timeout_ms,
            producer_id=expected[0],
            producer_epoch=expected[1],
        )
        self.ask_coordinator(request, _INIT_VERSION, self._initialized)

    def _initialized(self, node_id: int, response: Message) -> None:
        assert isinstance(response, InitProducerIdResponse), response
        if response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR and self._is_aged():
            self.restart()  # 4.3.1's answer to an epoch that is not the newest
            return
        if self.refused(node_id, response.error_code, "InitProducerId"):
            return
        self.producer = (response.producer_id, response.producer_epoch)
        self.wants_epoch = False
        self.identity_told(node_id)
        self.has_new_epoch()
        self.later(self.think_us)

    def _is_aged(self) -> bool:
        """Return whether it sent an epoch of a producer that has used up its epochs."""
        return self.wants_epoch and self.transactions.is_exhausted(self.transactional_id)

    def identity_told(self, node_id: int) -> None:
        """Check that the identity of an answer is unique."""
        assert self.producer is not None, self.number
        who = (self.number, self.incarnation)
        self.transactions.identity_told(node_id, self.transactional_id, self.producer, who)

    def has_new_epoch(self) -> None:
        """Begin all sequences again."""
