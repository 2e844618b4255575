"""Levels by component, from the list of loggers that Kafka's images take (`KAFKA_LOG4J_LOGGERS`).

The list is `kafka.controller=WARN,kafka.authorizer.logger=DEBUG`. A logger's level applies to all
loggers below it in the tree of their names, as in log4j; the longest name counts. A component has
the level of the loggers of 4.3.1 that write the same events; its own name is a logger, too.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from kraft_wire.node.events.catalogue import LEVELS

__all__ = ["LOGGERS", "LoggerLevels", "logger_levels"]

LOGGERS: Final[Mapping[str, tuple[str, ...]]] = {
    "server": ("kafka.server.KafkaRaftServer", "kafka.server.BrokerServer"),
    "network": (
        "kafka.network.SocketServer",
        "kafka.request.logger",
        "org.apache.kafka.common.network.Selector",
    ),
    "authorizer": ("kafka.authorizer.logger",),
    "links": (
        "org.apache.kafka.clients.NetworkClient",
        "org.apache.kafka.server.NodeToControllerChannelManagerImpl",
    ),
    "quorum": ("org.apache.kafka.raft.KafkaRaftClient", "org.apache.kafka.raft.QuorumState"),
    "controller": ("org.apache.kafka.controller.QuorumController", "kafka.controller"),
    "metadata": (
        "org.apache.kafka.image.loader.MetadataLoader",
        "kafka.server.metadata.BrokerMetadataPublisher",
        "state.change.logger",
    ),
    "broker": ("kafka.server.ReplicaManager", "kafka.cluster.Partition"),
    "coordinator": (
        "org.apache.kafka.coordinator.group.GroupCoordinatorService",
        "kafka.coordinator.transaction.TransactionCoordinator",
    ),
    "storage": (
        "kafka.log.LogManager",
        "org.apache.kafka.storage.internals.log.LogManager",
        "org.apache.kafka.storage.internals.log.UnifiedLog",
        "org.apache.kafka.storage.internals.log.LogCleaner",
    ),
}
"""Loggers of Kafka 4.3.1 by component; `kafka.controller` is the name up to 3.9, still in use."""


class LoggerLevels(NamedTuple):
    """What a list of loggers means here."""

    levels: Mapping[str, str]
    """Level by component; components that no logger names are not in it."""
    wrong: list[str]
    """Entries that are not LOGGER=LEVEL with a level of log4j."""
    unused: list[str]
    """Loggers to which no component belongs."""


def logger_levels(text: str) -> LoggerLevels:
    """Return the levels of a comma-separated list of LOGGER=LEVEL; the last equal name counts."""
    wanted: dict[str, str] = {}
    wrong: list[str] = []
    for entry in filter(None, (each.strip() for each in text.split(","))):
        logger, _, level = (part.strip() for part in entry.partition("="))
        if logger and level.upper() in LEVELS:
            wanted[logger] = level.upper()
        else:
            wrong.append(entry)
    levels: dict[str, str] = {}
    used: set[str] = set()
    for component, kafkas in LOGGERS.items():
        above = [
            each for each in wanted if any(_is_below(name, each) for name in (component, *kafkas))
        ]
        used.update(above)
        if above:
            levels[component] = wanted[max(above, key=len)]
    return LoggerLevels(levels, wrong, [each for each in wanted if each not in used])


def _is_below(logger: str, other: str) -> bool:
    """Whether the level of `other` applies to `logger`."""
    return logger == other or logger.startswith(f"{other}.")
