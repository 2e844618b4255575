"""A case of drawn requests: the same seed sends every broker the same sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kraft_wire.conformance.case import Case, Listener
from kraft_wire.conformance.connection import Connection
from kraft_wire.conformance.drawn import (
    group_requests,
    record_requests,
    topic_requests,
    transaction_requests,
)
from kraft_wire.conformance.drawn.scene import Scene
from kraft_wire.conformance.profile import Profile
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.verdict import ConnectionClosed
from kraft_wire.wire.generated.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kraft_wire.wire.generated.end_txn import EndTxnRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.init_producer_id import InitProducerIdRequest
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.message import Message, UnencodableMessage

__all__ = ["drawn_cases", "seed_range"]

Draw = Callable[[Scene, int], Message]

_REQUESTS: Final[Mapping[str, tuple[Draw, int]]] = {
    "Produce": (record_requests.produce_records, 6),
    "Fetch": (record_requests.fetch_records, 6),
    "ListOffsets": (record_requests.list_offsets, 4),
    "OffsetForLeaderEpoch": (record_requests.offset_for_leader_epoch, 2),
    "DeleteRecords": (record_requests.delete_records, 1),
    "DescribeProducers": (record_requests.describe_producers, 1),
    "InitProducerId": (record_requests.init_producer_id, 1),
    "OffsetCommit": (group_requests.offset_commit, 4),
    "OffsetFetch": (group_requests.offset_fetch, 3),
    "OffsetDelete": (group_requests.offset_delete, 1),
    "DeleteGroups": (group_requests.delete_groups, 1),
    "DescribeGroups": (group_requests.describe_groups, 1),
    "FindCoordinator": (group_requests.find_coordinator, 1),
    "Heartbeat": (group_requests.heartbeat, 1),
    "SyncGroup": (group_requests.sync_group, 1),
    "LeaveGroup": (group_requests.leave_group, 1),
    "CreateTopics": (topic_requests.create_topics, 3),
    "DeleteTopics": (topic_requests.delete_topics, 1),
    "CreatePartitions": (topic_requests.create_partitions, 1),
    "DescribeConfigs": (topic_requests.describe_configs, 1),
    "IncrementalAlterConfigs": (topic_requests.incremental_alter_configs, 2),
    "Metadata": (topic_requests.metadata, 2),
}
"""By API: the function that draws a request, and its weight."""

_TRANSACTIONS: Final[Mapping[str, tuple[Draw, int]]] = {
    "InitProducerId": (transaction_requests.init_transactional_id, 2),
    "AddPartitionsToTxn": (transaction_requests.add_partitions_to_txn, 4),
    "Produce": (transaction_requests.produce_in_transaction, 6),
    "AddOffsetsToTxn": (transaction_requests.add_offsets_to_txn, 2),
    "TxnOffsetCommit": (transaction_requests.txn_offset_commit, 3),
    "EndTxn": (transaction_requests.end_txn, 4),
}
"""The same for a transactional producer."""

_TRANSACTIONS_PERCENT: Final = 25
_EARLY: Final = frozenset(
    {
        int(ErrorCode.CONCURRENT_TRANSACTIONS),
        int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        int(ErrorCode.COORDINATOR_NOT_AVAILABLE),
        int(ErrorCode.NOT_COORDINATOR),
    }
)


def seed_range(text: str) -> range:
    """Return the seeds of `A:B`, half-open; raises ValueError."""
    first, _, last = text.partition(":")
    are_numbers = first.isascii() and first.isdecimal() and last.isascii() and last.isdecimal()
    if not are_numbers or int(first) >= int(last):
        raise ValueError(f"--random {text}: give two numbers A:B with A < B")
    return range(int(first), int(last))


def drawn_cases(seeds: Iterable[int], requests: int, profile: Profile) -> list[Case]:
    """Return a case for each seed."""
    return [_drawn_case(seed, requests, profile) for seed in seeds]


def _drawn_case(seed: int, requests: int, profile: Profile) -> Case:
    """Return the case `drawn.SEED`: `requests` requests in versions that the profile's release has.

    It passes if the broker answers all of them or closes the connection; a comparison judges the
    answers.
    """

    def judge(broker: Subject, _version: int) -> None:
        _send(broker, Scene(broker, seed), requests, profile)

    return Case(
        name=f"drawn.{seed}",
        api="ApiVersions",
        versions=(0, 0),
        source="two brokers that are sent the same requests",
        expectation=f"{requests} drawn requests are answered, or the connection is closed",
        steps="",
        listener=Listener.BROKER,
        judge=judge,
    )


def _send(broker: Subject, scene: Scene, requests: int, profile: Profile) -> None:
    connection = broker.connect()
    served = profile.versions[Listener.BROKER]
    for _ in range(requests):
        is_transactional = scene.chance(_TRANSACTIONS_PERCENT)
        drawn = _TRANSACTIONS if is_transactional else _REQUESTS
        apis = [api for api in drawn if api in served]
        (api,) = scene.random.choices(apis, [drawn[api][1] for api in apis])
        version = scene.random.randint(*served[api])
        request = drawn[api][0](scene, version)
        if not _is_encodable(connection, request, version):
            continue
        try:
            response = _answered(broker, connection, request, version)
        except ConnectionClosed:
            connection = broker.connect()
            continue
        if is_transactional:
            scene.take(response)
            if isinstance(request, EndTxnRequest | InitProducerIdRequest):
                _await_end(broker, scene.transactional_id)


def _is_encodable(connection: Connection, request: Message, version: int) -> bool:
    """Whether a request can be encoded in a version."""
    try:
        connection.encoded(request, version)
    except UnencodableMessage:
        return False
    return True


def _answered(broker: Subject, connection: Connection, request: Message, version: int) -> Message:
    """Return the response, once the coordinator is not at work on an earlier request."""
    for _ in broker.attempts("a response to a request that is not concurrent to another"):
        response = connection.ask(request, version, response_class(request.API_KEY))
        if not _is_early(response):
            return response
        broker.exchanges.pop()
    raise AssertionError("attempts end in an exception")


def _is_early(response: Message) -> bool:
    """Whether a response only reports that the coordinator is loading or busy."""
    return getattr(response, "error_code", ErrorCode.NONE) in _EARLY


def _await_end(broker: Subject, transactional_id: str) -> None:
    """Wait until the markers of a transaction are written."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    for _ in broker.attempts(f"the end of {transactional_id}'s transaction"):
        answer = broker.prepare(request, DescribeTransactionsResponse)
        if not answer.transaction_states[0].transaction_state.startswith("Prepare"):
            return
