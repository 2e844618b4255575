"""The very first start of an embedded node, which makes its own directory."""

from kraft_wire.node.config.node_config import Setting, load_config
from kraft_wire.node.node import Node
from kraft_wire.sim.disk.files import SimFileSystem
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
