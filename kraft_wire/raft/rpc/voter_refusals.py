"""Why a change of the voters is refused, in the words of 4.3.1 (KIP-853).

The checks that AddRaftVoter and RemoveRaftVoter share, in their order, and how Java prints the key
of a voter and a set of them.
"""

from typing import NamedTuple

from kraft_wire.java_hash import slot_of, uuid_hash
from kraft_wire.model import ReplicaKey, uuid_to_text
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Leader
from kraft_wire.raft.rpc.checks import is_of_other_cluster, leader_only_error
from kraft_wire.raft.voters import VoterSet
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["Refused", "change_refused", "key_as_text", "keys_as_text", "receiver_refused"]


class Refused(NamedTuple):
    """An error with its message."""

    error: ErrorCode
    words: str


def receiver_refused(quorum: Quorum, cluster_id: str | None) -> Refused | None:
    """Check the cluster and the leadership; beside the latter the message is empty."""
    if is_of_other_cluster(quorum, cluster_id):
        own = quorum.config.cluster_id
        words = f'The given id "{cluster_id}" doesn\'t match the cluster id "{own}"'
        return Refused(ErrorCode.INCONSISTENT_CLUSTER_ID, words)
    error = leader_only_error(quorum, None)
    assert error is not ErrorCode.NONE or isinstance(quorum.role, Leader)
    return None if error is ErrorCode.NONE else Refused(error, "")


def change_refused(quorum: Quorum, leader: Leader, verb: str) -> Refused | None:
    """Return why no change may start now; `verb` is adding or removing."""
    assert quorum.role is leader, quorum.role
    error, words, waits = ErrorCode.REQUEST_TIMED_OUT, None, "Request timed out waiting for"
    offset, high_watermark = quorum.voters.latest_offset, leader.high_watermark
    if leader.pending_change is not None:
        words = f"{waits} leader to handle previous voter change request"
    elif high_watermark is None:
        words = f"{waits} leader to establish HWM and fence previous voter changes"
    elif quorum.voters.kraft_version == 0:
        error = ErrorCode.UNSUPPORTED_VERSION
        words = f"Cluster doesn't support {verb} voter because the kraft.version feature is 0"
    elif offset is None or offset >= high_watermark:
        shown = "Optional.empty" if offset is None else f"Optional[{offset}]"
        words = (
            f"{waits} voters to commit the latest voter change at {shown} with HWM {high_watermark}"
        )
    return None if words is None else Refused(error, words)


def key_as_text(key: ReplicaKey) -> str:
    """Return a voter's key as Java prints it."""
    assert len(key.directory_id) == 16, key
    return f"ReplicaKey(id={key.id}, directoryId={uuid_to_text(key.directory_id)})"


def keys_as_text(voters: VoterSet) -> str:
    """Return the keys of a set as Java prints a `HashSet` of them."""
    assert len(voters) > 0, voters
    keys = sorted((node.key for node in voters.nodes.values()), key=_slot)
    return f"[{', '.join(map(key_as_text, keys))}]"


def _slot(key: ReplicaKey) -> int:
    """Return the slot of a key in a table of 16, which has room for 12 voters."""
    hashed = 31 * (31 + key.id) + uuid_hash(key.directory_id)
    assert hashed >= 0, key
    return slot_of(hashed, 16)
