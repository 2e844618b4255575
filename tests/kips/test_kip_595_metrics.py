"""KIP-595 "Metrics": names and values as 4.3.1 has them, in replicas and as a node shows them."""

import re
import urllib.request
from pathlib import Path

import pytest

from kraft_wire.cli.server.metrics_endpoint import IdleShare
from kraft_wire.model import ZERO_UUID, ElectionState, LeaderEpoch, ReplicaId, uuid_to_text
from kraft_wire.node.metrics.node_metrics import node_metrics
from kraft_wire.raft.events import AppendRequested, RecordsAppended
from kraft_wire.raft.figures import numbers, state_name, voted_directory
from kraft_wire.wire.generated.fetch import FetchRequest
from tests.kips.test_kip_595 import settled
from tests.node.quorum import NodeQuorum
from tests.node.test_three_controllers import committed
from tests.raft.cluster import directory_id
from tests.raft.rpc.test_responses import fetch_response, fetching
from tests.raft.small import Small, fetch_request, vote_request
from tests.raft.swarm import add_request
from tests.server_process import ServerProcess
from tests.waiting import HANG_S


def of(small: Small) -> dict[str, float]:
    return numbers(small.quorum, small.now_ms)


def test_leader_epoch_and_vote_are_told_or_minus_one() -> None:
    """595-MET-01, 595-MET-02, 595-MET-03: epoch 0 while there was none."""
    small = Small()
    first = of(small)
    assert (first["current-leader"], first["current-epoch"], first["current-vote"]) == (-1, 0, -1)
    assert voted_directory(small.quorum) == uuid_to_text(ZERO_UUID)
    small.ask(vote_request(7, 3, (2, 4)))
    voted = of(small)
    assert (voted["current-leader"], voted["current-epoch"], voted["current-vote"]) == (-1, 7, 3)
    assert voted_directory(small.quorum) == uuid_to_text(directory_id(3))
    small.follower(8, 2)
    assert (of(small)["current-leader"], of(small)["current-vote"]) == (2, -1)


def test_ends_of_the_log_and_of_what_is_committed_are_told() -> None:
    """595-MET-04: the high watermark is -1 until one is known."""
    small = Small((1, 5), (2, 3)).leader()
    before = of(small)
    assert (before["log-end-offset"], before["log-end-epoch"]) == (9, 3)
    assert before["high-watermark"] == -1
    small.ask(fetch_request(3, 9, 3))
    assert of(small)["high-watermark"] == 9


def test_state_has_kafkas_names() -> None:
    """595-MET-05: an observer is a follower that is no voter."""
    stored = ElectionState(LeaderEpoch(5), voted_id=ReplicaId(3))
    seen = [
        state_name(small.quorum)
        for small in (
            Small(),
            Small(stored=stored),
            Small((1, 2)).prospective(),
            Small(stored=stored).prospective(),
            Small((1, 2)).candidate(),
            Small((1, 2)).leader(),
            Small((1, 2)).follower(),
            Small((1, 2), node_id=9).follower(),
            Small((1, 2)).resigned(),
        )
    ]
    assert seen == [
        *("unattached", "unattached-voted", "prospective", "prospective-voted", "candidate"),
        *("leader", "follower", "observer", "unattached"),
    ]


def test_voters_and_observers_are_counted() -> None:
    """595-MET-06: observers, and a pending change of the voters, by the leader only."""
    cluster = settled(observers=(4,), is_dynamic=True)
    leader = cluster.leader()
    assert leader is not None
    quorum = leader.quorum().quorum
    told = numbers(quorum, cluster.now_ms)
    assert (told["number-of-voters"], told["number-of-observers"]) == (3, 1)
    assert (told["uncommitted-voter-change"], told["number-unknown-voter-connections"]) == (0, 0)
    cluster.run(1_000)
    ticket = cluster.ask(leader.id, add_request(cluster.hosts[4]))
    assert numbers(quorum, cluster.now_ms)["uncommitted-voter-change"] == 1
    assert cluster.run_until(lambda: ticket in cluster.client_answers)
    told = numbers(quorum, cluster.now_ms)
    assert (told["number-of-voters"], told["number-of-observers"]) == (4, 0)
    assert "number-of-observers" not in numbers(cluster.hosts[4].quorum().quorum, cluster.now_ms)


def test_election_is_timed_until_a_leader_is_known() -> None:
    """595-MET-07: from becoming prospective or candidate, whoever wins."""
    small = Small((1, 2)).prospective()
    small.now_ms += 70
    small.follower(5, 2)
    told = of(small)
    assert (told["election-latency-avg"], told["election-latency-max"]) == (70, 70)


def test_commit_is_timed_from_the_append_on_the_leader() -> None:
    """595-MET-08: until the high watermark passes the record."""
    small = Small((1, 2)).established()
    small.now_ms += 10
    small.step(AppendRequested("ticket", (b"a", b"b"), 2))
    small.now_ms += 40
    small.ask(fetch_request(2, 5, 2))
    assert of(small)["commit-latency-max"] == 40


def test_records_are_counted_by_who_fetches_and_by_who_appends() -> None:
    """595-MET-09: in a second, lately."""
    small = Small((1, 2)).established()
    before = of(small)["append-records-rate"]
    small.step(AppendRequested("ticket", (b"a",) * 30, 2))
    assert of(small)["append-records-rate"] - before == pytest.approx(1, rel=0.1)
    small = fetching()
    batch = small.shelf.new_batch(8, 3, (b"x",) * 30)
    sent = small.sent(FetchRequest)[-1]
    answer = fetch_response(records=batch.bytes, high_watermark=-1)
    small.disk.log.flush()
    small.answer(sent, answer)
    small.disk.log.append(batch)
    small.replica.step(RecordsAppended(), small.now_ms)
    assert of(small)["fetch-records-rate"] == pytest.approx(1, rel=0.1)


def test_node_shows_them_under_kafkas_group() -> None:
    """595-MET-01, 595-MET-02, 595-MET-03, 595-MET-04, 595-MET-05, 595-MET-06, 595-MET-07.

    595-MET-08, 595-MET-09: as a JMX exporter spells `kafka.server:type=raft-metrics`.
    """
    quorum = NodeQuorum()
    committed(quorum, 1_000)
    leader = quorum.elect()
    for node_id, member in quorum.members.items():
        metrics = node_metrics(member.running, quorum.clocks[1])
        shown = {family.name: family.values for family in metrics}
        group = "kafka_server_raft_metrics_"
        assert shown[f"{group}current_leader"] == {"": leader}
        state = "leader" if node_id == leader else "follower"
        assert shown[f"{group}current_state"] == {state: 1}
        assert shown[f"{group}high_watermark"][""] > 0
        assert (f"{group}number_of_observers" in shown) is (node_id == leader)
        for name in ("current_epoch", "current_vote", "log_end_offset", "log_end_epoch"):
            assert f"{group}{name}" in shown
        for name in ("election_latency_avg", "commit_latency_max", "fetch_records_rate"):
            assert f"{group}{name}" in shown


def test_measures_of_single_requests_are_shown_with_all_requests() -> None:
    """595-MET-10: rates and times by peer and kind were never shipped in this group."""
    quorum = NodeQuorum()
    node_id = quorum.elect()
    metrics = node_metrics(quorum.members[node_id].running, quorum.clocks[1])
    shown = {family.name for family in metrics}
    drafts = ("per_sec", "channel_size", "queue", "handle_time", "total_time", "boot")
    assert not [name for name in shown if "raft" in name and any(part in name for part in drafts)]
    assert "kafka_network_requestmetrics_requests" in shown


def test_share_of_idle_time_is_of_the_last_minute() -> None:
    """595-MET-11: seconds that the node's thread did not work, of those that passed."""
    idle = IdleShare(100.0, 5.0)
    assert idle.read(100.0, 5.0) == 1
    assert idle.read(110.0, 10.0) == 0.5
    assert idle.read(175.0, 10.0) == 1, "the first ten seconds are long over"
    assert idle.read(185.0, 30.0) == 0, "clocks of work may run ahead"
    idle = IdleShare(100.0, 5.0)
    assert idle.read(150.0, 30.0) == 0.5, "the first look counts from the start"
    assert idle.read(175.0, 55.0) == 0, "what was before the minute's first look is left out"


def test_share_of_idle_time_is_shown_in_the_quorums_group(tmp_path: Path) -> None:
    """595-MET-11: poll-idle-ratio-avg."""
    with ServerProcess(tmp_path, overrides={"metrics.port": "-1"}) as server:
        found = re.search(r"address=(http://\S+)", server.log.read_text())
        assert found is not None
        with urllib.request.urlopen(found[1], timeout=HANG_S) as answer:
            text = answer.read().decode()
    shown = re.search(r"^kafka_server_raft_metrics_poll_idle_ratio_avg (\S+)$", text, re.MULTILINE)
    assert shown is not None
    assert 0 <= float(shown[1]) <= 1
    assert "kafka_server_raft_metrics_current_leader" in text
