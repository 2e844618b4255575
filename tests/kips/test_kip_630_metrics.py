"""KIP-630 "Metrics": what shipped Kafka has in their place, as a node shows it.

The KIP's own names (latencies of making and loading a snapshot, its lag) were never shipped: the
test asserts KIP-938's and that the others are not there.
"""

from collections.abc import Mapping

from kraft_wire.node.metrics.node_metrics import node_metrics
from tests.kips.test_kip_630_node import BYTES, NEVER, OFTEN, fill, ids_of
from tests.node.quorum import NodeQuorum
from tests.node.test_three_controllers import committed

EMITTER = "kafka_server_snapshotemitter_latestsnapshotgenerated"
LOADED = "kafka_server_metadataloader_handleloadsnapshotcount"


def shown(quorum: NodeQuorum, node_id: int) -> dict[str, Mapping[str, float]]:
    running = quorum.members[node_id].running
    wall_ms = quorum.clocks[1]
    return {family.name: family.values for family in node_metrics(running, wall_ms)}


def test_size_and_age_of_the_newest_own_snapshot_are_shown() -> None:
    """630-MET-03, 630-MET-04: -1 while there is none; the lag itself is not shipped."""
    quorum = NodeQuorum(settings={**NEVER, BYTES: "3000"})
    leader = quorum.elect()
    assert shown(quorum, leader)[f"{EMITTER}agems"] == {"": -1}
    fill(quorum, 60)
    leader = quorum.elect()
    newest = ids_of(quorum, leader)[-1]
    size_bytes = quorum.members[leader].running.raft.quorum_log.snapshots.size_bytes(newest)
    before = shown(quorum, leader)
    assert before[f"{EMITTER}bytes"] == {"": size_bytes}
    quorum.advance(5_000)
    after = shown(quorum, leader)
    assert after[f"{EMITTER}agems"][""] >= before[f"{EMITTER}agems"][""] + 4_000


def test_snapshots_that_were_loaded_are_counted() -> None:
    """630-MET-01, 630-MET-02: a count instead of the time that making and loading take."""
    quorum = NodeQuorum(settings=OFTEN)
    fill(quorum)
    quorum.advance(61_000)
    victim = next(node_id for node_id in quorum.voters if node_id != quorum.elect())
    assert shown(quorum, victim)[LOADED] == {"": 0}
    quorum.wipe(victim)
    committed(quorum, 77)
    quorum.start(victim)
    quorum.level()
    found = shown(quorum, victim)
    assert found[LOADED] == {"": 1}
    assert not [name for name in found if "snapshot" in name and "latency" in name]


def test_high_watermark_of_the_metadata_is_shown() -> None:
    """630-MET-05."""
    quorum = NodeQuorum()
    committed(quorum, 1)
    quorum.level()
    quorum.advance(1_000)
    ends = {node_id: m.running.raft.log.high_watermark for node_id, m in quorum.members.items()}
    for node_id, end in ends.items():
        assert shown(quorum, node_id)["kafka_server_raft_metrics_high_watermark"] == {"": end}
