"""Fresh nodes of both makes, each with a scene for drawn requests."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.apache.schema_drawn.pair import Broker, set_scene
from tests.conformance.judged_nodes import apache_node, our_node

__all__ = ["both_brokers", "our_log"]


@contextmanager
def both_brokers(directory: Path) -> Iterator[tuple[Broker, Broker]]:
    """Start Apache Kafka and a node of ours."""
    theirs, own = directory / "apache", directory / "ours"
    theirs.mkdir()
    own.mkdir()
    with apache_node(theirs) as apache_targets, our_node(own) as our_targets:
        apache = Broker(apache_targets, str(theirs / "data"))
        ours = Broker(our_targets, str(own / "node-1"))
        for each in (apache, ours):
            set_scene(each)
        yield apache, ours
        for each in (apache, ours):
            each.close()


def our_log(directory: Path) -> Path:
    """Return the log lines of our node."""
    return directory / "ours" / "node-1.log"
