"""The very first start of an embedded node, which makes its own directory."""

from kraft_wire.node.config.node_config import Setting, load_config
from kraft_wire.node.node import Node
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.wire.records.record_batch import parse_batches
from tests.broker.groups.harness import CountingChance


def test_directory_that_a_first_start_makes_survives_power_loss_with_its_parents() -> None:
    fs = SimFileSystem()
    config = load_config(None, {}, [("log.dirs", Setting("/new/deep/data", "test"))])
    config = config.with_ports({listener.name: 9092 for listener in config.listeners})
    node = Node(config, fs, CountingChance(), now_ms=1, wall_ms=1)
    crashed = fs.crashed(())
    assert crashed.exists("/new/deep/data/meta.properties")
    again = Node(config, crashed, CountingChance(), now_ms=1, wall_ms=1)
    assert again.cluster_id == node.cluster_id


def test_first_checkpoint_has_the_time_of_day() -> None:
    """A clock that counts from the start of the machine says nothing to who reads the record."""
    fs = SimFileSystem()
    config = load_config(None, {}, [("log.dirs", Setting("/data", "test"))])
    config = config.with_ports({listener.name: 9092 for listener in config.listeners})
    Node(config, fs, CountingChance(), now_ms=7, wall_ms=1_700_000_000_000)
    checkpoint = fs.read("/data/bootstrap.checkpoint")
    times = {
        record.timestamp
        for batch in parse_batches(memoryview(checkpoint))
        for record in batch.iter_records()
    }
    assert times == {1_700_000_000_000}
