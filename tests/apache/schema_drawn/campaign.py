"""Drawn requests sent to both brokers, and each kind of difference once, with its request."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from kraft_wire.conformance.case import Listener
from kraft_wire.wire.generated.add_partitions_to_txn import AddPartitionsToTxnRequest
from kraft_wire.wire.generated.alter_client_quotas import AlterClientQuotasRequest
from kraft_wire.wire.generated.alter_configs import AlterConfigsRequest
from kraft_wire.wire.generated.create_partitions import CreatePartitionsRequest
from kraft_wire.wire.generated.create_topics import CreateTopicsRequest
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest
from kraft_wire.wire.generated.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from kraft_wire.wire.generated.elect_leaders import ElectLeadersRequest
from kraft_wire.wire.generated.incremental_alter_configs import IncrementalAlterConfigsRequest
from kraft_wire.wire.generated.produce import ProduceRequest
from kraft_wire.wire.generated.registry import request_class
from kraft_wire.wire.generated.remove_raft_voter import RemoveRaftVoterRequest
from kraft_wire.wire.generated.update_features import UpdateFeaturesRequest
from kraft_wire.wire.message import Message, UnencodableMessage
from kraft_wire.wire.structs import Struct
from tests.apache.schema_drawn.drawing import draw_request
from tests.apache.schema_drawn.pair import SILENT, Broker, Difference, difference
from tests.apache.schema_drawn.pools import TOPICS
from tests.apache.schema_drawn.shrinking import shrunk

__all__ = ["BrokerEnded", "Finding", "apis_of", "campaign", "text_of"]

_NEVER: Final = frozenset(
    {
        *("ControlledShutdown", "Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "AlterPartition"),
        *("Envelope", "BrokerRegistration", "BrokerHeartbeat", "UnregisterBroker"),
        *("AllocateProducerIds", "ControllerRegistration", "AssignReplicasToDirs"),
        *("UpdateRaftVoter", "WriteTxnMarkers", "AlterShareGroupOffsets"),
        *("FetchSnapshot", "AddRaftVoter"),
    }
)
"""They change the cluster; some requests of the last two stop a controller of 4.3.1."""
_NOT_AT_CONTROLLERS: Final = frozenset({"DescribeUserScramCredentials", "DescribeDelegationToken"})
"""A controller of 4.3.1 offers them, and fails at each or never answers."""
_KEPT: Final = {*TOPICS, "__consumer_offsets"}
_PLACES: Final = frozenset({"groups", "topics", "partitions", "partition_index"})
_TIMEOUT_MS: Final = 5_000
_NODE_ID: Final = 1


class BrokerEnded(Exception):
    """A broker does not answer any more."""


@dataclass
class Finding:
    """One kind of difference."""

    api: str
    listener: Listener
    version: int
    request: Message
    """The smallest one that shows it."""
    difference: Difference
    times: int = 0


def apis_of(broker: Broker, only: Collection[str] = ()) -> list[tuple[Listener, int]]:
    """Return the APIs that both listeners serve and that may be asked."""
    found = [(listener, key) for listener, at in broker.targets.items() for key in at.versions]
    return [each for each in found if _may_be_asked(*each) and (not only or _name(each[1]) in only)]


def _may_be_asked(listener: Listener, api_key: int) -> bool:
    name = _name(api_key)
    if listener is Listener.CONTROLLER and name in _NOT_AT_CONTROLLERS:
        return False
    return name not in _NEVER


def _name(api_key: int) -> str:
    return request_class(api_key).NAME.removesuffix("Request")


def campaign(
    apache: Broker, ours: Broker, seed: int, requests: int, only: Collection[str] = ()
) -> list[Finding]:
    """Send so many requests to both brokers; return the differences, one of each kind."""
    found: dict[tuple[str, Difference], Finding] = {}
    for listener, version, request in _drawn(apache, Random(seed), requests, only):
        asked = f"{text_of(request)} in version {version}"
        try:
            _compare(apache, ours, listener, request, version, found)
        except OSError as error:
            raise BrokerEnded(f"{error}, after {asked}") from error
    return list(found.values())


def _compare(
    apache: Broker,
    ours: Broker,
    listener: Listener,
    request: Message,
    version: int,
    found: dict[tuple[str, Difference], Finding],
) -> None:
    differs = difference(apache, ours, listener, request, version)
    if differs is None:
        return
    name = _name(request.API_KEY)
    if (name, differs.kind) not in found:
        small = _smallest(apache, ours, listener, request, version, differs)
        found[name, differs.kind] = Finding(name, listener, version, small, differs)
    found[name, differs.kind].times += 1


def _drawn(
    broker: Broker, random: Random, requests: int, only: Collection[str]
) -> Iterator[tuple[Listener, int, Message]]:
    apis = apis_of(broker, only)
    for _ in range(requests):
        listener, api_key = random.choice(apis)
        first, last = broker.targets[listener].versions[api_key]
        version = last if random.random() < 0.4 else random.randint(first, last)
        request = draw_request(random, api_key, version)
        if _is_harmless(request) and _is_encodable(request, version):
            yield listener, version, request


def _is_encodable(request: Message, version: int) -> bool:
    try:
        request.encode(version)
    except UnencodableMessage:
        return False
    return True


def _is_harmless(request: Any) -> bool:
    """Take what would end the comparison out of a request; false if nothing would be left."""
    match request:
        case ProduceRequest():
            request.transactional_id = None
            data = [each for topic in request.topic_data for each in topic.partition_data]
            return request.acks != 0 and all(each.records is not None for each in data)
        case DeleteTopicsRequest():
            request.topic_names = [each for each in request.topic_names or () if each not in _KEPT]
            return all(each.name is not None and each.name not in _KEPT for each in request.topics)
        case CreateTopicsRequest() | CreatePartitionsRequest():
            request.timeout_ms = _TIMEOUT_MS
        case (
            AlterClientQuotasRequest()
            | AlterConfigsRequest()
            | IncrementalAlterConfigsRequest()
            | UpdateFeaturesRequest()
        ):
            request.validate_only = True
        case AddPartitionsToTxnRequest():
            request.transactions = request.transactions[:1]
            return bool(request.transactions or request.v3_and_below_topics)
        case RemoveRaftVoterRequest():
            return request.voter_id != _NODE_ID
        case ElectLeadersRequest():
            return request.topic_partitions is not None
        case DescribeShareGroupOffsetsRequest():  # 4.3.1 never answers if a partition is below 0
            return _lowest_partition(request) >= 0
    return True


def _lowest_partition(value: Any) -> int:
    """Return the lowest number of a partition in a message; 0 without one."""
    if isinstance(value, list):
        return min(map(_lowest_partition, value), default=0)
    if not isinstance(value, Struct):
        return value if isinstance(value, int) else 0
    inner = (getattr(value, name) for name in value.field_names if name in _PLACES)
    return min(map(_lowest_partition, inner), default=0)


def _smallest(
    apache: Broker,
    ours: Broker,
    listener: Listener,
    request: Message,
    version: int,
    differs: Difference,
) -> Message:
    if SILENT in (differs.apache, differs.ours):
        return request  # each try would take long

    def still_differs(candidate: Message) -> bool:
        again = difference(apache, ours, listener, candidate, version)
        return again is not None and again.kind == differs.kind

    return shrunk(request, still_differs)


def text_of(value: object) -> str:
    """Return a message without the fields that have their defaults."""
    if isinstance(value, list):
        return f"[{', '.join(map(text_of, value))}]"
    if not isinstance(value, Struct):
        return repr(value)
    default = type(value)()
    changed = (
        f"{name}={text_of(getattr(value, name))}"
        for name in value.field_names
        if getattr(value, name) != getattr(default, name)
    )
    return f"{type(value).__name__}({', '.join(changed)})"
