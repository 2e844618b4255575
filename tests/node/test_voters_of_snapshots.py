"""A metadata snapshot has the voter set of the records below its end, to the offset (KIP-853).

The simulator's own parser reads the disks: the records of the log, and the head of each snapshot.
"""

from random import Random

import pytest

from kraft_wire.model import Offset
from kraft_wire.raft.voters import VoterSet, VoterSetHistory
from kraft_wire.sim.judge.log_watch import LogWatch, SeenBatch
from kraft_wire.wire.generated.add_raft_voter import AddRaftVoterRequest, Listener
from kraft_wire.wire.generated.kraft_version_record import KRaftVersionRecord
from kraft_wire.wire.generated.voters_record import VotersRecord
from tests.node.quorum import CLUSTER_ID, HOST, Answer, NodeQuorum, directory_id
from tests.node.test_dynamic_quorum import add_voter, remove_voter, voters_of
from tests.node.test_metadata_transactions import LOG
from tests.node.test_three_controllers import committed
from tests.raft.cluster import directory_id as directory_of
from tests.raft.cluster import voter_node

INTERVAL_MS = 1_000
BY_TIME = {"metadata.log.max.snapshot.interval.ms": str(INTERVAL_MS)}
Controls = tuple[VotersRecord | None, int]


def controls_of(batches: list[SeenBatch], end_offset: int) -> Controls:
    """Return the last voter set and level below an offset, by walking all control records."""
    voters: VotersRecord | None = None
    level = 0
    for batch in batches:
        for offset, _, message in batch.controls():
            if offset < end_offset and isinstance(message, VotersRecord):
                voters = message
            elif offset < end_offset and isinstance(message, KRaftVersionRecord):
                level = message.kraft_version
    return voters, level


def judge_snapshots(quorum: NodeQuorum) -> dict[int, int]:
    """Compare every snapshot of every node; return how many voters each end has."""
    found: dict[int, int] = {}
    disks = [LogWatch(LOG) for _ in quorum.members]
    for disk, member in zip(disks, quorum.members.values(), strict=True):
        disk.look(member.fs)
    whole = [disk for disk in disks if disk.start_offset == 0]
    batches = max(whole, key=lambda disk: disk.end_offset).batches
    for disk in disks:
        for (offset, _), snapshot in disk.snapshots.items():
            if offset == 0:
                continue
            in_snapshot = controls_of(snapshot.batches(), 1 << 62)
            assert in_snapshot == controls_of(batches, offset), offset
            assert in_snapshot[0] is not None
            found[offset] = len(in_snapshot[0].voters)
    return found


def ends(quorum: NodeQuorum, node_id: int) -> list[int]:
    """Return where the snapshots of a node end."""
    return [each.offset for each in quorum.members[node_id].running.raft.quorum_log.snapshots.ids]


def ask_to_add(quorum: NodeQuorum, leader: int, node_id: int) -> Answer:
    """Ask the leader for a new voter, and do not wait for the answer."""
    request = AddRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        timeout_ms=10_000,
        voter_id=node_id,
        voter_directory_id=directory_id(node_id),
        listeners=[Listener(name="CONTROLLER", host=HOST, port=9_000 + node_id)],
    )
    return quorum.ask(leader, request)


def test_voter_that_is_appended_behind_a_snapshot_is_not_in_it_and_in_the_next_one() -> None:
    quorum = NodeQuorum((1, 2, 3), BY_TIME, is_dynamic=True)
    quorum.add(4)
    committed(quorum, 1)
    leader = quorum.elect()
    count = len(ends(quorum, leader))
    quorum.until(lambda: len(ends(quorum, leader)) > count)
    quorum.advance(INTERVAL_MS * 6 // 10)  # the leader has committed a NoOp since
    quorum.keeps_flushes_back = True
    ask_to_add(quorum, leader, 4)
    history = quorum.members[leader].running.raft.replica.quorum.voters
    quorum.until(lambda: len(history.latest) == 4)
    quorum.until(lambda: len(ends(quorum, leader)) > count + 1)
    behind = ends(quorum, leader)[-1]
    appended = history.latest_offset
    assert appended is not None
    assert behind <= appended
    quorum.keeps_flushes_back = False
    for node_id in quorum.members:
        quorum.flush(node_id)
    quorum.advance(3 * INTERVAL_MS)
    found = judge_snapshots(quorum)
    assert found[behind] == 3
    assert found[max(found)] == 4


@pytest.mark.parametrize("seed", range(3))
def test_snapshots_of_every_node_have_the_voters_and_the_level_below_their_end(seed: int) -> None:
    random = Random(seed)
    settings = {"metadata.log.max.record.bytes.between.snapshots": "1"}
    quorum = NodeQuorum((1, 2, 3), settings, is_dynamic=True)
    quorum.add(4)
    quorum.level()
    for value in range(12):
        is_voter = 4 in voters_of(quorum, quorum.elect())
        kind = random.choice(("set", "voters", "restart"))
        if kind == "set":
            committed(quorum, value)
        elif kind == "voters":
            (remove_voter if is_voter else add_voter)(quorum, 4)
        else:
            victim = random.choice(list(quorum.members))
            quorum.kill(victim)
            quorum.start(victim)
        quorum.level()
        quorum.advance(50)  # each node takes its snapshot
    found = judge_snapshots(quorum)
    assert len(found) > 5


def dumb_set_at(entries: list[tuple[int, int]], end_offset: int) -> int | None:
    """Return the last entry below an offset."""
    below = [entry for offset, entry in entries if offset < end_offset]
    return below[-1] if below else None


@pytest.mark.parametrize("seed", range(20))
def test_history_knows_the_set_and_the_level_at_every_offset(seed: int) -> None:
    random = Random(seed)
    history = VoterSetHistory(VoterSet({}))
    sets: list[tuple[int, int]] = []
    levels: list[tuple[int, int]] = []
    offset = -1
    for size in range(1, 12):
        offset += random.randrange(1, 4)
        if random.random() < 0.7:
            nodes = [voter_node(each, directory_of(each)) for each in range(size)]
            history.appended_voters(Offset(offset), VoterSet.of(nodes))
            sets.append((offset, size))
        else:
            history.appended_version(Offset(offset), size)
            levels.append((offset, size))
        if random.random() < 0.2:
            offset -= random.randrange(3)
            history.truncated_to(Offset(max(0, offset)))
            sets = [each for each in sets if each[0] < max(0, offset)]
            levels = [each for each in levels if each[0] < max(0, offset)]
        known_from = 0
        if random.random() < 0.3 and offset > 0:
            known_from = random.randrange(1, offset + 1)
            history.forgotten_below(Offset(known_from))
            sets = _kept(sets, known_from)
            levels = _kept(levels, known_from)
        for end in range(known_from, offset + 3):
            assert len(history.set_at(Offset(end))) == (dumb_set_at(sets, end) or 0)
            assert history.version_at(Offset(end)) == (dumb_set_at(levels, end) or 0)


def _kept(entries: list[tuple[int, int]], end_offset: int) -> list[tuple[int, int]]:
    """Return the entries that a snapshot at an offset leaves: the newest below, and all others."""
    below = [each for each in entries if each[0] < end_offset]
    return below[-1:] + [each for each in entries if each[0] >= end_offset]
