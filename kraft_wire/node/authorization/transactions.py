"""Guards of requests about transactions: the transactional id, then the group, then topics."""

from typing import Final, cast

from kraft_wire.broker.handlers.add_partitions_to_txn import topic_result
from kraft_wire.broker.metadata.metadata_cache import is_internal
from kraft_wire.node.authorization.asker import Asked, Passed, Verdict
from kraft_wire.node.authorization.splitting import finishing, split, with_refused
from kraft_wire.node.authorization.whole import refused
from kraft_wire.wire.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
)
from kraft_wire.wire.generated.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.init_producer_id import InitProducerIdRequest
from kraft_wire.wire.generated.list_transactions import ListTransactionsResponse
from kraft_wire.wire.generated.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kraft_wire.wire.message import Message

__all__ = [
    "add_partitions_to_txn",
    "describe_transactions",
    "init_producer_id",
    "list_transactions",
    "txn_offset_commit",
]

_BROKERS_FROM: Final = 4
"""The version of AddPartitionsToTxn from which brokers send it."""


def init_producer_id(asked: Asked) -> Verdict:
    """InitProducerId: with a transactional id the right on that, else on the cluster or a topic."""
    request = cast("InitProducerIdRequest", asked.request)
    write, two_phases, idempotent = asked.needs
    name, version = request.transactional_id, asked.context.api_version
    if name is not None:
        for need in (write, two_phases) if request.enable2_pc else (write,):
            if not asked.asker.meets(need, name):
                return refused(request, need.error, version)
        return Passed(request)
    on_cluster, on_topic = idempotent.rights
    if asked.asker.has(on_cluster, is_silent=True) or asked.asker.meets_for_any(on_topic):
        return Passed(request)
    return refused(request, idempotent.error, version)


def add_partitions_to_txn(asked: Asked) -> Verdict:
    """AddPartitionsToTxn: brokers need the cluster's right; one refused topic fails all others."""
    request = cast("AddPartitionsToTxnRequest", asked.request)
    write_id, write_topic, act = asked.needs
    if asked.context.api_version >= _BROKERS_FROM:
        if asked.asker.meets(act):
            return Passed(request)
        return refused(request, act.error, asked.context.api_version)
    topics = request.v3_and_below_topics
    if not asked.asker.meets(write_id, request.v3_and_below_transactional_id):
        return _not_added([(topic, write_id.error) for topic in topics])
    asked_for = [topic for topic in topics if not is_internal(topic.name)]
    _, hidden = split(asked, write_topic, asked_for, lambda topic: topic.name)
    if not hidden:
        return Passed(request)
    names = {topic.name for topic in hidden}
    answer = AddPartitionsToTxnResponse()
    for topic in topics:
        is_refused = topic.name in names or is_internal(topic.name)
        answer.results_by_topic_v3_and_below.append(
            topic_result(topic.name, topic.partitions, write_topic.error)
            if is_refused
            else _not_attempted(asked, topic)
        )
    return answer


def _not_attempted(asked: Asked, topic: AddPartitionsToTxnTopic) -> AddPartitionsToTxnTopicResult:
    """Return the answer of an allowed topic beside a refused one; partitions may not exist."""
    found = asked.image.topic(topic.name)
    known = {} if found is None else found.partitions
    result = topic_result(topic.name, topic.partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
    for each in result.results_by_partition:
        if each.partition_index not in known:
            each.partition_error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return result


def _not_added(
    topics: list[tuple[AddPartitionsToTxnTopic, ErrorCode]],
) -> AddPartitionsToTxnResponse:
    results = [topic_result(topic.name, topic.partitions, error) for topic, error in topics]
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)


def txn_offset_commit(asked: Asked) -> Verdict:
    """TxnOffsetCommit: the transactional id, the group, then topic by topic."""
    request = cast("TxnOffsetCommitRequest", asked.request)
    write_id, read_group, read_topic = asked.needs
    for need, name in ((write_id, request.transactional_id), (read_group, request.group_id)):
        if not asked.asker.meets(need, name):
            error = need.error
            return TxnOffsetCommitResponse(
                topics=[_uncommitted(topic, error) for topic in request.topics]
            )
    request.topics, hidden = split(asked, read_topic, request.topics, lambda topic: topic.name)
    answers = [_uncommitted(topic, read_topic.error) for topic in hidden]

    topics = request.topics
    return with_refused(request, TxnOffsetCommitResponse, "topics", answers, topics, first=True)


def _uncommitted(
    topic: TxnOffsetCommitRequestTopic, error: ErrorCode
) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=topic.name,
        partitions=[
            TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
            for each in topic.partitions
        ],
    )


def describe_transactions(asked: Asked) -> Verdict:
    """DescribeTransactions: id by id; topics that may not be described are hidden."""
    request = cast("DescribeTransactionsRequest", asked.request)
    describe, describe_topic = asked.needs
    order = request.transactional_ids
    allowed = asked.asker.allowed(describe, order)
    request.transactional_ids = [name for name in order if allowed[name]]

    def change(answer: DescribeTransactionsResponse) -> Message:
        served = iter(answer.transaction_states)
        answer.transaction_states = [
            next(served)
            if allowed[name]
            else TransactionState(transactional_id=name, error_code=describe.error)
            for name in order
        ]
        for state in answer.transaction_states:
            state.topics, _ = split(asked, describe_topic, state.topics, lambda each: each.topic)
        return answer

    return Passed(request, finishing(DescribeTransactionsResponse, change))


def list_transactions(asked: Asked) -> Verdict:
    """ListTransactions: hide transactions that may not be described."""
    (describe,) = asked.needs

    def change(answer: ListTransactionsResponse) -> Message:
        answer.transaction_states, _ = split(
            asked, describe, answer.transaction_states, lambda each: each.transactional_id
        )
        return answer

    return Passed(asked.request, finishing(ListTransactionsResponse, change))
