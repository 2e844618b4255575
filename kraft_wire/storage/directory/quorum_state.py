"""`quorum-state`: the vote, the epoch and the known leader (KIP-595, KIP-853), one JSON object.

Data version 0 belongs to kraft.version 0 and has the static voters; version 1 has the directory id
of the candidate that got the vote. It is replaced atomically and durably before any message that
depends on it is sent. It has no checksum, so parsing is strict: an unknown version, a missing,
unknown or mistyped key is `CorruptCheckpoint`, and the node does not start.
"""

import json

from kraft_wire.foreign_text import json_value
from kraft_wire.model import (
    ZERO_UUID,
    ElectionState,
    LeaderEpoch,
    ReplicaId,
    uuid_from_text,
    uuid_to_text,
)
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.files import FileSystem, MissingFile, replace_file

__all__ = ["QUORUM_STATE", "ElectionState", "read_quorum_state", "write_quorum_state"]

QUORUM_STATE = "quorum-state"
_INT32_MAX = (1 << 31) - 1
_KEYS = {
    0: ["clusterId", "leaderId", "leaderEpoch", "votedId", "appliedOffset", "currentVoters"],
    1: ["leaderId", "leaderEpoch", "votedId", "votedDirectoryId"],
}


def read_quorum_state(fs: FileSystem, directory: str) -> ElectionState | None:
    """Return the state, None without the file; CorruptCheckpoint if it is damaged."""
    path = f"{directory}/{QUORUM_STATE}"
    try:
        data = fs.read(path)
    except MissingFile:
        return None
    try:
        fields = json_value(data.decode("utf-8"), object_pairs_hook=_unique)
    except ValueError as error:
        raise CorruptCheckpoint(path, f"not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise CorruptCheckpoint(path, "not a JSON object")
    version = fields.pop("data_version", None)
    if version not in (0, 1) or isinstance(version, bool):
        raise CorruptCheckpoint(path, f"unknown data_version {version!r}")
    if sorted(fields) != sorted(_KEYS[version]):
        raise CorruptCheckpoint(path, f"keys {sorted(fields)} are not those of version {version}")
    state = _parsed(path, version, fields)
    assert state.leader_epoch >= 0, state
    return state


def write_quorum_state(
    fs: FileSystem, directory: str, state: ElectionState, data_version: int
) -> None:
    """Replace the file, durably, in Kafka's key order and without a newline."""
    assert state.leader_epoch >= 0, state
    assert data_version in _KEYS, data_version
    common: dict[str, object] = {
        "leaderId": state.leader_id,
        "leaderEpoch": state.leader_epoch,
        "votedId": state.voted_id,
    }
    if data_version == 0:
        voters = [{"voterId": voter} for voter in state.static_voters]
        fields = {"clusterId": "", **common, "appliedOffset": 0, "currentVoters": voters}
    else:
        fields = {**common, "votedDirectoryId": uuid_to_text(state.voted_directory_id)}
    text = json.dumps({**fields, "data_version": data_version}, separators=(",", ":"))
    replace_file(fs, f"{directory}/{QUORUM_STATE}", text.encode("ascii"))


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse a repeated key."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a key is repeated")
    assert len(fields) <= len(pairs)
    return fields


def _parsed(path: str, version: int, fields: dict[str, object]) -> ElectionState:
    """Check each value and return the state."""
    assert version in _KEYS, version
    epoch = _int32(path, fields, "leaderEpoch", 0)
    leader, voted = _int32(path, fields, "leaderId", -1), _int32(path, fields, "votedId", -1)
    directory_id, voters = ZERO_UUID, []
    if version == 1:
        text = fields["votedDirectoryId"]
        try:
            directory_id = uuid_from_text(text if isinstance(text, str) else "")
        except ValueError as error:
            raise CorruptCheckpoint(path, f"votedDirectoryId: {error}") from error
        if voted < 0 and directory_id != ZERO_UUID:
            raise CorruptCheckpoint(path, "a voted directory without a voted id")
    else:
        listed = fields["currentVoters"]
        if listed is not None and not isinstance(listed, list):
            raise CorruptCheckpoint(path, "currentVoters is not a list")
        voters = [_voter(path, voter) for voter in listed or []]
    return ElectionState(
        LeaderEpoch(epoch), ReplicaId(leader), ReplicaId(voted), directory_id, tuple(voters)
    )


def _voter(path: str, voter: object) -> ReplicaId:
    assert path, "a path is needed"
    if not isinstance(voter, dict) or list(voter) != ["voterId"]:
        raise CorruptCheckpoint(path, "an entry of currentVoters is not {voterId}")
    return ReplicaId(_int32(path, voter, "voterId", 0))


def _int32(path: str, fields: dict[str, object], key: str, least: int) -> int:
    value = fields[key]
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _INT32_MAX:
        raise CorruptCheckpoint(path, f"{key} {value!r} is not an int32 of at least {least}")
    assert value >= least, value
    return value
