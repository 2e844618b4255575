"""TxnOffsetCommit, API key 28, versions 0-5.

Behaviour:   writes offsets of a transaction, which are pending until its marker · the first commit
             of a transaction waits for the transaction coordinator · the response is sent when the
             offsets are in `__consumer_offsets`; partitions that do not exist, or whose metadata is
             too long, have an error each and the others are written
Versions:    v2 leader epoch (KIP-320) · v3 member, generation, instance (KIP-447) ·
             v4 TRANSACTION_ABORTABLE · v5 the offsets partition is added implicitly (KIP-890)
Left out:    commits of members of KIP-848 groups
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import PARKED, Parked, RequestContext
from kraft_wire.broker.coordination.clock_reading import arrival_of
from kraft_wire.broker.coordination.log import TransactionalWrite
from kraft_wire.broker.groups.offsets.answer import CommitAnswer
from kraft_wire.broker.groups.offsets.commit import commit_offsets, failed_topics
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.metadata.metadata_cache import OFFSETS_TOPIC
from kraft_wire.broker.producing.transaction_verifier import (
    TransactionQuestion,
    offset_commit_error,
)
from kraft_wire.broker.producing.verification import (
    NOT_REQUIRED,
    FirstBatch,
    Verification,
    begin_verification,
)
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponseTopic,
)
from kraft_wire.wire.generated.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]

_FIRST_LOADING_VERSION: Final = 2
_FIRST_IMPLICIT_VERSION: Final = 5


def handle(
    broker: "Broker", context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse | Parked:
    """Write a transaction's offsets; parked until coordinator and ISR have agreed (KIP-447).

    Errors per partition, first match wins: UNKNOWN_TOPIC_OR_PARTITION, INVALID_GROUP_ID,
    COORDINATOR_NOT_AVAILABLE (no such offsets partition), NOT_COORDINATOR, INVALID_PRODUCER_EPOCH,
    those of the transaction coordinator, COORDINATOR_LOAD_IN_PROGRESS, then those of
    `groups.offsets.commit.commit_offsets`.
    """
    answer = CommitAnswer(by_id=False)
    known = [
        topic
        for topic in (_existing(broker, requested, answer) for requested in request.topics)
        if topic.partitions
    ]
    if not known:
        return _response(answer.topics, context)
    return _Commit(broker, context, request, known, answer).serve()


def _existing(
    broker: "Broker", requested: TxnOffsetCommitRequestTopic, answer: CommitAnswer
) -> OffsetCommitRequestTopic:
    """Return the topic as OffsetCommit has it, with the partitions that exist; answer the others.

    Its id is that of the metadata, by which a member's epoch is checked.
    """
    topic = broker.image.topic(requested.name)
    known = OffsetCommitRequestTopic(name=requested.name)
    missing = OffsetCommitRequestTopic(name=requested.name)
    if topic is not None:
        known.topic_id = topic.topic_id
    for each in requested.partitions:
        is_known = topic is not None and each.partition_index in topic.partitions
        (known if is_known else missing).partitions.append(
            OffsetCommitRequestPartition(
                partition_index=each.partition_index,
                committed_offset=each.committed_offset,
                committed_leader_epoch=each.committed_leader_epoch,
                committed_metadata=each.committed_metadata,
            )
        )
    if topic is None or missing.partitions:
        answer.refuse(missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return known


class _Commit:
    """One request, on its way into the log."""

    def __init__(
        self,
        broker: "Broker",
        context: RequestContext,
        request: TxnOffsetCommitRequest,
        topics: list[OffsetCommitRequestTopic],
        answer: CommitAnswer,
    ) -> None:
        """`topics` are those that exist, `answer` has the refused partitions of the others."""
        self._broker = broker
        self._context = context
        self._request = request
        self._topics = topics
        self._answer = answer

    def serve(self) -> TxnOffsetCommitResponse | Parked:
        """Write at once, or ask the transaction coordinator first."""
        broker, context, request = self._broker, self._context, self._request
        if not request.group_id:
            return self._failed(ErrorCode.INVALID_GROUP_ID)
        is_implicit = context.api_version >= _FIRST_IMPLICIT_VERSION
        settings = broker.settings
        is_enabled = settings.transaction_partition_verification_enable
        if not is_enabled and not is_implicit:
            return self._write(context, NOT_REQUIRED)
        name = TopicPartition(OFFSETS_TOPIC, broker.groups.partition_of(request.group_id))
        partition = broker.partition(*name)
        if partition is None:
            return self._failed(self._absent(name))
        first = FirstBatch(request.producer_id, request.producer_epoch, is_version_2=is_implicit)
        begun = begin_verification(
            partition, first, context.now_ms, settings.producer_id_expiration_ms
        )
        if isinstance(begun, ErrorCode):
            is_fenced = begun is ErrorCode.INVALID_PRODUCER_EPOCH
            return self._failed(begun if is_fenced else ErrorCode.NOT_COORDINATOR)
        if begun is None:
            return self._write(context, None)
        self._ask(name, begun if is_enabled else NOT_REQUIRED, is_implicit=is_implicit)
        return PARKED

    def _absent(self, name: TopicPartition) -> ErrorCode:
        """Return why the group's partition is not on this broker."""
        topic = self._broker.image.topic(name.topic)
        is_elsewhere = topic is not None and name.partition in topic.partitions
        return ErrorCode.NOT_COORDINATOR if is_elsewhere else ErrorCode.COORDINATOR_NOT_AVAILABLE

    def _ask(self, name: TopicPartition, verification: Verification, *, is_implicit: bool) -> None:
        context, request = self._context, self._request

        def answered(errors: Mapping[TopicPartition, ErrorCode], now_ms: int, wall_ms: int) -> None:
            then = context.at(max(now_ms, context.now_ms), wall_ms)
            error = offset_commit_error(errors[name], context.api_version)
            if error is ErrorCode.NONE:
                answer = self._write(then, verification)
            else:
                answer = self._failed(error)
            if answer is not PARKED:
                self._broker.complete(context.reply_to, answer)

        question = TransactionQuestion(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            not is_implicit,
            [name],
        )
        self._broker.transaction_verifier.ask(question, answered, context.now_ms, context.wall_ms)

    def _write(
        self, context: RequestContext, verification: Verification | None
    ) -> TxnOffsetCommitResponse | Parked:
        """Append the offsets of partitions that exist."""
        request = self._request
        shard = self._broker.groups.shard_of(request.group_id)
        if not isinstance(shard, GroupShard):
            return self._failed(shard)
        commit = OffsetCommitRequest(
            group_id=request.group_id,
            generation_id_or_member_epoch=request.generation_id,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
        )
        transaction = TransactionalWrite(request.producer_id, request.producer_epoch, verification)
        outcome = commit_offsets(
            shard, commit, self._topics, context.api_version, arrival_of(context), transaction
        )
        if outcome.safe_at is None:
            return self._answered(outcome.topics)

        def committed(errors: Mapping[int, ErrorCode]) -> TxnOffsetCommitResponse:
            for error in errors.values():
                return self._failed(error)
            return self._answered(outcome.topics)

        return shard.env.commits.answer_when_committed(
            context, {shard.log.partition: outcome.safe_at}, committed
        )

    def _failed(self, error: ErrorCode) -> TxnOffsetCommitResponse:
        """Answer with one error for all partitions that exist."""
        return self._answered(failed_topics(self._topics, error))

    def _answered(self, topics: list[OffsetCommitResponseTopic]) -> TxnOffsetCommitResponse:
        return _response(self._answer.with_topics(topics), self._context)


def _response(
    topics: list[OffsetCommitResponseTopic], context: RequestContext
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index,
                        error_code=_in_version(each.error_code, context),
                    )
                    for each in topic.partitions
                ],
            )
            for topic in topics
        ]
    )


def _in_version(error_code: int, context: RequestContext) -> int:
    """Return an error as clients of a version know it."""
    is_loading = error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if is_loading and context.api_version < _FIRST_LOADING_VERSION:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return error_code
