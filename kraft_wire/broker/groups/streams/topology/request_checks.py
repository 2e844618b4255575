"""What is checked of a topology in a StreamsGroupHeartbeat request, in Kafka's order and words."""

from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.metadata.metadata_cache import INTERNAL_TOPICS
from kraft_wire.settings.topic_names import topic_name_problem
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.streams_group_heartbeat import Topology

__all__ = ["check_changelogs", "check_regexes", "check_topic_names", "named_topics"]


def named_topics(topology: Topology) -> list[str]:
    """Return each topic that a topology names, once: the client must be allowed to describe all."""
    names: dict[str, None] = {}
    for subtopology in topology.subtopologies:
        names.update(dict.fromkeys(subtopology.source_topics))
        names.update(dict.fromkeys(subtopology.repartition_sink_topics))
        names.update((topic.name, None) for topic in subtopology.repartition_source_topics)
        names.update((topic.name, None) for topic in subtopology.state_changelog_topics)
    return list(names)


def check_topic_names(names: list[str]) -> Refusal | None:
    """Return why topics may not be part of a topology, before any right is checked.

    Error: STREAMS_INVALID_TOPOLOGY, for internal topics of Kafka first, then for malformed names.
    """
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        return _invalid(
            f"Use of Kafka internal topics {','.join(internal)} "
            "in a Kafka Streams topology is prohibited."
        )
    malformed = [name for name in names if topic_name_problem(name) is not None]
    if malformed:
        return _invalid(f"Topic names {','.join(malformed)} are not valid topic names.")
    return None


def check_regexes(topology: Topology) -> Refusal | None:
    """Return a refusal if source topics are given as patterns. Error: INVALID_REQUEST."""
    if any(subtopology.source_topic_regex for subtopology in topology.subtopologies):
        message = "Regular expressions for source topics are not supported yet."
        return Refusal(ErrorCode.INVALID_REQUEST, message)
    return None


def check_changelogs(topology: Topology) -> Refusal | None:
    """Return a refusal if a changelog topic has a partition count: the coordinator decides it.

    Error: STREAMS_INVALID_TOPOLOGY.
    """
    for subtopology in topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions != 0:
                return _invalid(
                    f"Changelog topic {topic.name} must have an undefined partition count, "
                    f"but it is set to {topic.partitions}."
                )
    return None


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
