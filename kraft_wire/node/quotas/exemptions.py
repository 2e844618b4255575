"""What a request is charged with, and which requests are exempt (KIP-124).

Exempt are the calls of one node to another: fetches of followers, transaction markers, changes of
partitions and the quorum's RPCs. Kafka's other cluster actions, such as heartbeats of brokers, are
measured; a refused call always is. An envelope is measured where its request entered the cluster.
"""

from typing import Final

from kraft_wire.apis.api import ListenerType, Owner
from kraft_wire.apis.registry import key_of, owned
from kraft_wire.node.links.envelopes import mentions
from kraft_wire.node.quotas.charge import Charge
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchRequest
from kraft_wire.wire.message import Message

__all__ = ["is_refused", "judge"]

_FETCH: Final = key_of("Fetch")
_PRODUCE: Final = key_of("Produce")
_SHARE_FETCH: Final = key_of("ShareFetch")
_BETWEEN_NODES: Final = frozenset(map(key_of, ("WriteTxnMarkers", "AlterPartition", "Envelope")))
_QUORUM: Final = frozenset(owned(Owner.RAFT, ListenerType.CONTROLLER))


def judge(charge: Charge, request: Message, size_bytes: int, *, of_controllers: bool) -> None:
    """Note what a request pays for; `size_bytes` is that of its frame without the length."""
    api_key = request.API_KEY
    if api_key == _PRODUCE:
        charge.produced_bytes = size_bytes
    elif api_key == _FETCH and not of_controllers:
        assert isinstance(request, FetchRequest), request
        state = request.replica_state
        is_follower = request.replica_id >= 0 or (state is not None and state.replica_id >= 0)
        charge.is_exempt, charge.is_fetch = is_follower, not is_follower
    elif api_key == _SHARE_FETCH:
        charge.is_fetch = True
    else:
        charge.is_exempt = api_key in _BETWEEN_NODES or (of_controllers and api_key in _QUORUM)


def is_refused(answer: Message) -> bool:
    """Return whether the authorizer refused a call between nodes."""
    return mentions(answer, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
