"""Both sides of `benchmarks.quorum`: three controllers of ours, and Apache's three as shipped.

Same properties, same tool to ask them; Apache's with the collector that its own script sets.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.node import SCRIPT_FLAGS, command_of, cpu_seconds, resident_bytes
from tests.apache.java_process import java_command
from tests.chaos.failover import DEFAULTS, SIDES, Writer
from tests.mixed.controller import Controller
from tests.mixed.quorum import MixedQuorum

__all__ = ["NODES", "SECONDS_MAX", "Measured", "Side", "sides"]

NODES = (1, 2, 3)
SECONDS_MAX = 600.0
"""Patience with a machine that others use as well; no figure depends on it."""


class Measured(Controller):
    """A node whose process can be looked at; Apache's has a heap and the flags of its script."""

    heap_mb = 256
    flags: Sequence[str] = SCRIPT_FLAGS
    stop_seconds_max = SECONDS_MAX

    def command(self) -> Sequence[str]:
        if self.is_ours:
            return super().command()
        return java_command(
            "kafka.Kafka",
            [str(self.properties_file)],
            release=self.make,
            heap_mb=self.heap_mb,
            flags=["-Djudge.level=WARN"],
            base_flags=self.flags,
        )


class Side(MixedQuorum):
    """Three formatted controllers of one make."""

    seconds_max = SECONDS_MAX

    def __init__(
        self,
        name: str,
        home: Path,
        *,
        overrides: Mapping[str, str] | None = None,
        heap_mb: int = 256,
    ) -> None:
        make = SIDES[name]
        self.name = name
        given = {**DEFAULTS, **(overrides or {})}
        super().__init__(home, dict.fromkeys(NODES, make), voters=NODES, overrides=given)
        self.measured = {
            each.node_id: Measured(each.node_id, make, home, each.port, each.properties)
            for each in self.nodes.values()
        }
        self.nodes = dict(self.measured)
        for node in self.measured.values():
            node.heap_mb = heap_mb
            node.format()

    def stop(self) -> None:
        """Stop every process gracefully."""
        for node in self.nodes.values():
            node.stop()

    def write_once(self) -> None:
        """Return when a change is acknowledged."""
        writer = Writer(self)
        writer.write()
        writer.close()

    def whole(self) -> None:
        """Wait until everybody has caught up."""
        for node_id in self.nodes:
            self.has_caught_up(node_id)

    def again_empty(self, node_id: int) -> None:
        """Kill a node, lose its disk and format it anew."""
        node = self.nodes[node_id]
        node.kill()
        node.wipe()
        node.format()

    def cpu_seconds(self) -> float:
        """Processor time of all three so far."""
        return sum(cpu_seconds(node.pid) for node in self.measured.values())

    def resident_bytes(self) -> int:
        """Memory of all three."""
        return sum(resident_bytes(node.pid) for node in self.measured.values())

    def command(self) -> str:
        """How one of them was started."""
        return command_of(self.measured[NODES[0]].pid)


def sides(
    home: Path, *, overrides: Mapping[str, str] | None = None, heap_mb: int = 256
) -> dict[str, Side]:
    """Both of them, formatted and not started."""
    return {name: Side(name, home / name, overrides=overrides, heap_mb=heap_mb) for name in SIDES}
