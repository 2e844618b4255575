"""A node whose voter set comes with a snapshot acts by it at once, also without a leader.

A higher epoch may reach it while the disk installs the snapshot: it is Unattached when the voter
set arrives, and only voters have an election timeout (KIP-595 "Unattached", KIP-853).
"""

import pytest

from kraft_wire.raft.effects import InstallSnapshot
from kraft_wire.raft.events import (
    ControlRecord,
    RecordsAppended,
    RequestFailed,
    SnapshotInstalled,
)
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.roles import Prospective, Unattached
from kraft_wire.raft.voters import VoterSet
from kraft_wire.wire.generated.fetch import FetchRequest, SnapshotId
from kraft_wire.wire.generated.fetch_snapshot import FetchSnapshotRequest
from kraft_wire.wire.generated.kraft_version_record import KRaftVersionRecord
from kraft_wire.wire.generated.update_raft_voter import UpdateRaftVoterRequest
from kraft_wire.wire.generated.voters_record import VotersRecord
from kraft_wire.wire.message import Message
from tests.raft.cluster import directory_id, voter_node
from tests.raft.rpc.test_responses import chunk, fetch_response
from tests.raft.small import TIMING, Small, begin_request, vote_request


def installing(voters: tuple[int, ...]) -> tuple[Small, InstallSnapshot]:
    """Replica 1 has asked its disk to install a snapshot, then heard of epoch 4."""
    small = Small((1, 5), (2, 3), voters=voters, is_dynamic=True)
    small.ask(begin_request(3, 2))
    for update in small.sent(UpdateRaftVoterRequest):  # a voter tells its address first
        small.step(RequestFailed(update.request_id))
        small.pass_ms(TIMING.fetch_timeout_ms // 4)
    (to_leader,) = (one for one in small.sent(FetchRequest) if one.node_id == 2)
    small.answer(to_leader, fetch_response(snapshot_id=SnapshotId(end_offset=20, epoch=2)))
    small.answer(small.sent(FetchSnapshotRequest)[-1], chunk(0, b"abcdefghij"))
    (install,) = (each for each in small.effects if isinstance(each, InstallSnapshot))
    small.ask(vote_request(4, 3, last=(1, 1)))
    assert isinstance(small.role, Unattached)
    return small, install


def install(small: Small, effect: InstallSnapshot, voters: tuple[int, ...]) -> None:
    """Let the disk say that the snapshot, which names these voters, is the log now."""
    members = VoterSet.of(voter_node(each, directory_id(each)) for each in voters)
    small.disk.log.reset_to(effect.snapshot_id)
    controls = (KRaftVersionRecord(version=0, kraft_version=1), members.to_record())
    small.step(SnapshotInstalled(effect.snapshot_id, controls))
    assert isinstance(small.role, Unattached)


@pytest.mark.parametrize(("before", "after"), [((1, 2, 3), (2, 3)), ((2, 3), (1, 2, 3))])
def test_only_a_voter_of_the_snapshot_campaigns(
    before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    small, effect = installing(before)
    install(small, effect, after)
    small.pass_ms(2 * TIMING.election_timeout_ms)
    assert isinstance(small.role, Prospective) is (1 in after)


def of_voters(*ids: int) -> VotersRecord:
    """Return a record of these voters, also if no set of ours could be written so."""
    record = VotersRecord(version=0, voters=[])
    for each in ids:
        (one,) = VoterSet.of([voter_node(2, directory_id(2))]).to_record().voters
        one.voter_id = each
        record.voters.append(one)
    return record


BROKEN = [
    of_voters(),
    of_voters(2, 2),
    of_voters(-1, 2),
    KRaftVersionRecord(version=0, kraft_version=0),
]


@pytest.mark.parametrize("record", BROKEN, ids=["none", "twice", "negative", "older level"])
def test_voters_that_no_quorum_can_have_change_nothing(record: Message) -> None:
    """VoterSet of 4.3.1 has at least one voter, each id once; a level is never lowered."""
    small = Small((1, 5), voters=(1, 2, 3), is_dynamic=True).follower()
    offset = small.disk.log.log_end_offset
    small.step(RecordsAppended((ControlRecord(offset, record),)))
    assert small.quorum.ignored[Ignored.BROKEN_VOTER_RECORD] == 1
    assert sorted(small.quorum.voters.latest.nodes) == [1, 2, 3]
    assert small.quorum.voters.kraft_version == 1
    small.step(RecordsAppended((ControlRecord(offset, of_voters(2, 3)),)))
    assert small.quorum.ignored[Ignored.BROKEN_VOTER_RECORD] == 1
    assert sorted(small.quorum.voters.latest.nodes) == [2, 3]


@pytest.mark.parametrize("record", BROKEN, ids=["none", "twice", "negative", "older level"])
def test_voters_of_a_snapshot_that_no_quorum_can_have_are_passed_over(record: Message) -> None:
    small, effect = installing((1, 2, 3))
    members = VoterSet.of(voter_node(each, directory_id(each)) for each in (2, 3))
    small.disk.log.reset_to(effect.snapshot_id)
    level = KRaftVersionRecord(version=0, kraft_version=1)
    small.step(SnapshotInstalled(effect.snapshot_id, (level, members.to_record(), record)))
    assert small.quorum.ignored[Ignored.BROKEN_VOTER_RECORD] == 1
    assert sorted(small.quorum.voters.latest.nodes) == [2, 3]
    assert small.quorum.high_watermark == effect.snapshot_id.offset
