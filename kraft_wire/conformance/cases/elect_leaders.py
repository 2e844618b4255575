"""ElectLeaders, API key 43: the preferred replica leads, or any that lives (KIP-460)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_SOURCE: Final = "org.apache.kafka.controller.ReplicationControlManager, electLeader"
_CODE: Final = "replica_election_results[0].partition_result[0].error_code"
_PREFERRED, _UNCLEAN, _NONE = 0, 1, 7
_TYPE_SINCE: Final = 1


def _elect(
    broker: Subject, version: int, topic: str, *partitions: int, election_type: int = _PREFERRED
) -> ElectLeadersResponse:
    wanted = [TopicPartitions(topic=topic, partitions=list(partitions or (0,)))]
    request = ElectLeadersRequest(
        election_type=election_type, topic_partitions=wanted, timeout_ms=10_000
    )
    return broker.ask(request, version, ElectLeadersResponse)


@case("ElectLeaders", _SOURCE)
def preferred_replica_leads(broker: Subject, version: int) -> None:
    """A partition led by its preferred replica is ELECTION_NOT_NEEDED.

    Elect the leaders of a topic's two partitions.
    """
    topic = broker.topic(partitions=2)
    answer = _elect(broker, version, topic.name, 0, 1)
    expect.error(answer, _CODE, ErrorCode.ELECTION_NOT_NEEDED)
    found = sorted(
        each.partition_id for each in answer.replica_election_results[0].partition_result
    )
    expect.true(found == [0, 1], "partitions 0 and 1", found, "replica_election_results")


@case("ElectLeaders", _SOURCE, since=_TYPE_SINCE)
def leader_lives(broker: Subject, version: int) -> None:
    """An unclean election of a partition that has a leader is ELECTION_NOT_NEEDED.

    Elect any leader of a partition.
    """
    answer = _elect(broker, version, broker.topic().name, election_type=_UNCLEAN)
    expect.error(answer, _CODE, ErrorCode.ELECTION_NOT_NEEDED)


@case("ElectLeaders", _SOURCE)
def unknown_partitions(broker: Subject, version: int) -> None:
    """Partitions that do not exist are UNKNOWN_TOPIC_OR_PARTITION.

    Elect leaders of a partition that a topic does not have, and of a topic that does not exist.
    """
    for name, partition in ((broker.topic().name, 4), (broker.name(), 0)):
        answer = _elect(broker, version, name, partition)
        expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("ElectLeaders", _SOURCE)
def all_partitions(broker: Subject, version: int) -> None:
    """A null list elects leaders of all partitions, and omits those that need none.

    Elect all preferred leaders: a new topic's partition is not in the response.
    """
    topic = broker.topic().name
    request = ElectLeadersRequest(
        election_type=_PREFERRED, topic_partitions=None, timeout_ms=10_000
    )
    answer = broker.ask(request, version, ElectLeadersResponse)
    found = [
        each.topic
        for each in answer.replica_election_results
        if each.topic == topic and each.partition_result
    ]
    expect.true(found == [], "no result of the topic", found, "replica_election_results")


@case("ElectLeaders", _SOURCE, since=_TYPE_SINCE)
def unknown_type(broker: Subject, version: int) -> None:
    """An unknown type of election is refused with INVALID_REQUEST.

    Elect with type 7.
    """
    answer = _elect(broker, version, broker.topic().name, election_type=_NONE)
    expect.error(answer, "error_code", ErrorCode.INVALID_REQUEST)
