"""KIP-595 on the wire, on the disk and in the configuration: what its schemas and tables say.

Bytes are laid out by hand in the order of the KIP's schemas. Where shipped Kafka differs, the test
asserts what is shipped.
"""

import json
import struct
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kraft_wire.cli.dump.command import app
from kraft_wire.model import (
    ElectionState,
    LeaderEpoch,
    Offset,
    OffsetAndEpoch,
    ReplicaId,
    Uuid,
    uuid_to_text,
)
from kraft_wire.node.config.node_config import ConfigError, load_config, settings_of_file
from kraft_wire.settings.broker import BROKER_KEYS
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.directory.quorum_state import read_quorum_state, write_quorum_state
from kraft_wire.storage.leader_epochs import LeaderEpochs
from kraft_wire.wire.generated.begin_quorum_epoch import (
    BeginQuorumEpochResponse,
)
from kraft_wire.wire.generated.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from kraft_wire.wire.generated.fetch import FetchRequest, PartitionData
from kraft_wire.wire.generated.leader_change_message import LeaderChangeMessage, Voter
from kraft_wire.wire.generated.registry import REQUESTS
from kraft_wire.wire.generated.vote import VoteResponse
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.control_records import ControlRecordType, control_record
from kraft_wire.wire.records.record import Record
from tests.raft.small import begin_request, fetch_request, vote_request

TOPIC = "__cluster_metadata"
DIRECTORY = Uuid(bytes(range(1, 17)))
TAGS = b"\0"


def int16(*values: int) -> bytes:
    return struct.pack(f">{len(values)}h", *values)


def int32(*values: int) -> bytes:
    return struct.pack(f">{len(values)}i", *values)


def int64(*values: int) -> bytes:
    return struct.pack(f">{len(values)}q", *values)


def compact(text: str) -> bytes:
    return bytes([len(text) + 1]) + text.encode()


def plain(text: str) -> bytes:
    return int16(len(text)) + text.encode()


def one(item: bytes) -> bytes:
    """A compact array of one."""
    return b"\x02" + item


def one_plain(item: bytes) -> bytes:
    """An array of one as versions that are not flexible have it."""
    return int32(1) + item


def assert_form(message: Message, version: int, expected: bytes) -> None:
    """The message is these bytes, and these bytes are the message."""
    assert message.encode(version) == expected
    decoded, end = type(message).decode(expected, version)
    assert end == len(expected)
    assert decoded.encode(version) == expected


# ---- Vote ------------------------------------------------------------------------------------


def test_vote_request_has_the_kips_fields_in_its_order() -> None:
    """595-VOTE-01, 595-VOTE-03: cluster, topic, partition; never flat, flexible from 0."""
    request = vote_request(7, 2, (5, 99), cluster_id="c", directory=DIRECTORY)
    partition = int32(0, 7, 2, 5) + int64(99) + TAGS
    assert_form(request, 0, compact("c") + one(compact(TOPIC) + one(partition) + TAGS) + TAGS)
    keyed = int32(0, 7, 2) + DIRECTORY + bytes(16) + int32(5) + int64(99)
    for version, rest in ((1, b""), (2, b"\0")):
        expected = compact("c") + int32(1)
        expected += one(compact(TOPIC) + one(keyed + rest + TAGS) + TAGS) + TAGS
        assert_form(request, version, expected)


def test_vote_response_has_the_kips_fields_in_its_order() -> None:
    """595-VOTE-02: error, leader and epoch, and whether the vote is given."""
    partition = int32(0) + int16(74) + int32(3, 9) + b"\1" + TAGS
    data = int16(0) + one(compact(TOPIC) + one(partition) + TAGS) + TAGS
    for version in (0, 1, 2):
        message, _ = VoteResponse.decode(data, version)
        answer = message.topics[0].partitions[0]
        assert (answer.error_code, answer.leader_id, answer.leader_epoch) == (74, 3, 9)
        assert answer.vote_granted
        assert_form(message, version, data)


# ---- BeginQuorumEpoch and EndQuorumEpoch -----------------------------------------------------


def test_begin_request_has_the_kips_fields_in_its_order() -> None:
    """595-BEGIN-05, 595-BEGIN-07: flexible, with keys and addresses, from version 1 on."""
    request = begin_request(9, 2, cluster_id="c")
    partition = int32(0, 2, 9)
    old = plain("c") + one_plain(plain(TOPIC) + one_plain(partition))
    assert_form(request, 0, old)
    listener = compact("CONTROLLER") + compact("host") + struct.pack(">H", 9002) + TAGS
    new = compact("c") + int32(1)
    new += one(compact(TOPIC) + one(int32(0) + bytes(16) + int32(2, 9) + TAGS) + TAGS)
    assert_form(request, 1, new + one(listener) + TAGS)


@pytest.mark.parametrize("kind", [BeginQuorumEpochResponse, EndQuorumEpochResponse])
def test_answers_to_begin_and_end_have_the_kips_fields_in_their_order(kind: type[Message]) -> None:
    """595-BEGIN-06, 595-END-12: with the partition's index."""
    partition = int32(0) + int16(74) + int32(3, 9)
    old = int16(0) + one_plain(plain(TOPIC) + one_plain(partition))
    assert_form(kind.decode(old, 0)[0], 0, old)
    new = int16(0) + one(compact(TOPIC) + one(partition + TAGS) + TAGS) + TAGS
    assert_form(kind.decode(new, 1)[0], 1, new)


def test_end_request_has_the_kips_fields_but_the_replicas_id() -> None:
    """595-END-10, 595-END-13: successors by id in version 0, by key in version 1."""
    partition = int32(0, 2, 9) + int32(2) + int32(3, 1)
    old = plain("c") + one_plain(plain(TOPIC) + one_plain(partition))
    assert_form(EndQuorumEpochRequest.decode(old, 0)[0], 0, old)
    candidates = b"\x03" + b"".join(int32(each) + DIRECTORY + TAGS for each in (3, 1))
    keyed = compact(TOPIC) + one(int32(0, 2, 9) + candidates + TAGS) + TAGS
    new = compact("c") + one(keyed) + b"\x01" + TAGS
    message, _ = EndQuorumEpochRequest.decode(new, 1)
    named = message.topics[0].partitions[0].preferred_candidates
    assert [candidate.candidate_id for candidate in named] == [3, 1]
    assert_form(message, 1, new)


# ---- Fetch -----------------------------------------------------------------------------------


def test_fetch_names_the_last_fetched_epoch_from_version_12_on() -> None:
    """595-FETCH-07: LastFetchedEpoch stands behind the offset; -1 where it is not known."""
    request = fetch_request(7, 40, 5, cluster_id=None)
    request.replica_state.replica_id, request.replica_id = -1, 2
    data = request.encode(13)
    place = data.index(int32(0, 7) + int64(40))
    assert data[place + 16 : place + 20] == int32(5)
    old = FetchRequest(replica_id=2).encode(11)
    assert FetchRequest.decode(old, 11)[0].encode(12)
    first = fetch_request(7, 40, -1, cluster_id=None).topics[0].partitions[0]
    assert first.last_fetched_epoch == -1
    assert type(first)().last_fetched_epoch == -1


def test_metadata_log_is_fetched_by_fetch_and_by_nothing_else() -> None:
    """595-FETCH-12, 595-FETCH-13: the APIs of the drafts do not exist, nor do their fields."""
    names = [request.name for request in REQUESTS.values()]
    assert "FetchRequest" in names
    drafts = ("FetchQuorumRecords", "FindQuorum", "Observe")
    assert not [name for name in names if name.startswith(drafts)]
    assert not [field for field in PartitionData.__slots__ if field.startswith(("first_d", "next"))]


def test_fetch_keeps_the_fields_that_it_had_before() -> None:
    """595-FETCH-24: replica, wait, sizes, isolation, session, forgotten topics, rack."""
    partition = int32(0) + int32(7) + int64(40) + int64(3) + int32(1_000)
    topics = one_plain(plain("t") + one_plain(partition))
    forgotten = one_plain(plain("f") + int32(1) + int32(8))
    data = int32(2, 500, 1, 9_000) + b"\1" + int32(77, 4) + topics + forgotten + plain("r")
    message, _ = FetchRequest.decode(data, 11)
    assert (message.replica_id, message.max_wait_ms, message.min_bytes) == (2, 500, 1)
    assert (message.session_id, message.session_epoch, message.rack_id) == (77, 4, "r")
    assert_form(message, 11, data)
    assert FetchRequest.MIN_VERSION == 4


# ---- files -----------------------------------------------------------------------------------


def stored(state: ElectionState, data_version: int) -> str:
    fs = SimFileSystem()
    fs.make_directory("d")
    write_quorum_state(fs, "d", state, data_version)
    assert read_quorum_state(fs, "d") == state
    return fs.read("d/quorum-state").decode()


def test_quorum_state_of_a_static_quorum_has_the_kips_fields() -> None:
    """595-STATE-01, 595-STATE-02, 595-STATE-06: cluster id empty, applied offset 0."""
    voters = (ReplicaId(1), ReplicaId(2))
    state = ElectionState(LeaderEpoch(5), ReplicaId(2), static_voters=voters)
    assert stored(state, 0) == (
        '{"clusterId":"","leaderId":2,"leaderEpoch":5,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
    )


def test_quorum_state_of_a_dynamic_quorum_has_the_voted_directory() -> None:
    """595-STATE-01: as a node of 4.3.1 wrote it."""
    first = ElectionState(LeaderEpoch(1), ReplicaId(1))
    assert stored(first, 1) == (
        '{"leaderId":1,"leaderEpoch":1,"votedId":-1,'
        '"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    )
    voted = ElectionState(LeaderEpoch(7), voted_id=ReplicaId(3), voted_directory_id=DIRECTORY)
    assert json.loads(stored(voted, 1))["votedDirectoryId"] == uuid_to_text(DIRECTORY)


def test_each_epoch_is_kept_with_the_offset_it_begins_at() -> None:
    """595-FETCH-21: in memory, and in leader-epoch-checkpoint as Kafka writes it."""
    fs = SimFileSystem()
    fs.make_directory("d")
    epochs = LeaderEpochs(fs, "d")
    for epoch, start in ((1, 0), (4, 7), (5, 9)):
        epochs.assign(LeaderEpoch(epoch), Offset(start))
    assert fs.read("d/leader-epoch-checkpoint") == b"0\n3\n1 0\n4 7\n5 9\n"
    again = LeaderEpochs(fs, "d")
    again.load()
    end = again.end_offset_for_epoch(LeaderEpoch(3), Offset(12))
    assert end == OffsetAndEpoch(Offset(7), LeaderEpoch(1))


def test_log_of_the_quorum_is_dumped_with_its_records_decoded(tmp_path: Path) -> None:
    """595-TOOL-03: control records by name, records of the state machine by type."""
    change = LeaderChangeMessage(leader_id=1, voters=[Voter(voter_id=1)], granting_voters=[])
    control = build_batch(
        [control_record(ControlRecordType.LEADER_CHANGE, change, 1)],
        partition_leader_epoch=1,
        is_control=True,
    )
    no_op = build_batch([Record(None, b"\1\x14\0\0")], base_offset=1, partition_leader_epoch=1)
    path = tmp_path / f"{TOPIC}-0" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(bytes(control) + bytes(no_op))
    result = CliRunner().invoke(app, ["--json", "--records", str(path)])
    assert result.exit_code == 0, result.output
    entries = [json.loads(line) for line in result.output.splitlines()]
    kinds = [entry.get("control") or entry.get("type") for entry in entries]
    assert "LEADER_CHANGE" in kinds
    assert "NO_OP_RECORD" in kinds


# ---- configuration ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["quorum.retry.backoff.max.ms", "quorum.election.jitter.max.ms", "quorum.voters"]
)
def test_keys_that_only_drafts_have_are_not_known(name: str) -> None:
    """595-CFG-07, 595-CFG-08."""
    assert name not in BROKER_KEYS
    assert (f"controller.{name}" in BROKER_KEYS) is (name == "quorum.voters")


STATIC = """\
process.roles=controller
node.id=1
controller.listener.names=CONTROLLER
listeners=CONTROLLER://127.0.0.1:9093
log.dirs=/d
controller.quorum.voters="""


def test_static_voters_are_given_as_id_host_and_port() -> None:
    """595-CFG-01: `{id}@{host}:{port}`, separated by commas; anything else is refused."""
    config = load_config(settings_of_file(STATIC + "1@one:9093,2@[::1]:9094", "file"), {})
    assert config.voters == ((1, "one", 9093), (2, "::1", 9094))
    with pytest.raises(ConfigError, match="is not id@host:port"):
        load_config(settings_of_file(STATIC + "1@one:9093,two:9094", "file"), {})


def test_periods_of_the_quorum_are_configured_under_kafkas_keys() -> None:
    """595-CFG-02, 595-CFG-03, 595-CFG-04, 595-CFG-05, 595-CFG-06: defaults in milliseconds."""
    defaults = {
        "fetch.timeout.ms": 2_000,
        "election.timeout.ms": 1_000,
        "election.backoff.max.ms": 1_000,
        "request.timeout.ms": 2_000,
        "retry.backoff.ms": 20,
    }
    known = {name: BROKER_KEYS[f"controller.quorum.{name}"].default for name in defaults}
    assert known == defaults
