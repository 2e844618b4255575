"""Apache Kafka's node and ours, over two log directories each and the same properties.

Both get the same server.properties, except for ports and paths.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.message import Message
from tests.apache.node import ApacheNode
from tests.process import KRAFT_WIRE, KraftWireServer
from tests.server.wire_client import WireClient

__all__ = [
    "APACHE",
    "DIRECTORIES",
    "MAKES",
    "OURS",
    "Node",
    "ask",
    "copied",
    "copied_without_logs",
    "node_over",
    "serving",
]

APACHE, OURS = "apache", "ours"
MAKES = (APACHE, OURS)
DIRECTORIES = ("data", "more")
"""The two entries of `log.dirs`, below the folder of a node."""

_TOPICS = ("odd-", "deleted-", "__consumer_offsets-", "__transaction_state-")
_SETTINGS = {
    "num.partitions": "1",
    "log.retention.ms": "-1",
    "log.cleaner.backoff.ms": "3600000",
    "log.index.interval.bytes": "150",
    "log.index.size.max.bytes": "4096",
    "transaction.max.timeout.ms": "86400000",
}


def _apache_node(folder: Path) -> ApacheNode:
    listed = ",".join(str(folder / name) for name in DIRECTORIES)
    return ApacheNode(folder, overrides={"log.dirs": listed, **_SETTINGS})


class OurNode(KraftWireServer):
    """Our server with the properties that Apache's node would have."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "ours.log", folder / "ready.json")
        self._same = _apache_node(folder)

    @property
    def bootstrap(self) -> str:
        """``host:port`` of the broker's listener."""
        return self._same.bootstrap

    def configure(self) -> None:
        """Write the properties."""
        self._same.configure()

    def arguments(self) -> list[str]:
        return [str(self._same.properties_file)]

    def format(self) -> None:
        """Format the directories with our own tool."""
        arguments = ["format", "-t", self._same.cluster_id, "-c", *self.arguments()]
        subprocess.run([KRAFT_WIRE, *arguments], check=True, capture_output=True)


Node: TypeAlias = ApacheNode | OurNode


def node_over(make: str, folder: Path) -> Node:
    """Return a configured node of a make over a folder."""
    node: Node = _apache_node(folder) if make == APACHE else OurNode(folder)
    folder.mkdir(parents=True, exist_ok=True)
    node.configure()
    return node


def copied(source: Path, target: Path) -> Path:
    """Copy the directories of a node, whose index files have holes; return the new folder."""
    target.mkdir(parents=True)
    for name in DIRECTORIES:
        command = ["cp", "-a", "--sparse=always", str(source / name), str(target / name)]
        subprocess.run(command, check=True)
    return target


@contextmanager
def serving(node: Node) -> Iterator[WireClient]:
    """Start a node, connect to it, and stop it in the end."""
    node.start()
    try:
        with WireClient(node.bootstrap) as client:
            yield client
    finally:
        node.stop()


def copied_without_logs(source: Path, target: Path) -> Path:
    """Copy what a start reads before the logs of topics; return the new folder."""
    for name in DIRECTORIES:
        shutil.copytree(
            source / name,
            target / name,
            ignore=lambda _, names: [each for each in names if each.startswith(_TOPICS)],
        )
    return target


def ask(client: WireClient, request: Message, version: int) -> Any:
    """Send a request and return its response."""
    return client.call(request, version, response_class(request.API_KEY))
