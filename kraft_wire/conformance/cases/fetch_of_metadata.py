"""Fetch, API key 1, at a controller: the metadata log as observers read it (KIP-595)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import Listener, case
from kraft_wire.conformance.quorum import metadata_fetch, quorum_facts
from kraft_wire.conformance.requests import fetch_partition
from kraft_wire.conformance.subject import Subject
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchResponse

_CODE: Final = fetch_partition("error_code")
_SINCE: Final = 13
_SOURCE: Final = "KIP-595, Fetch"


@case("Fetch", _SOURCE, since=_SINCE, listener=Listener.CONTROLLER)
def older_leader_epoch(controller: Subject, version: int) -> None:
    """A leader epoch below the leader's gets FENCED_LEADER_EPOCH and the leader's id.

    Fetch offset 0 with the epoch before the leader's.
    """
    facts = quorum_facts(controller)
    request = metadata_fetch(version, offset=0, epoch=facts.leader_epoch - 1, last_fetched_epoch=0)
    answer = controller.ask(request, version, FetchResponse)
    expect.error(answer, _CODE, ErrorCode.FENCED_LEADER_EPOCH)
    expect.equal(answer, fetch_partition("current_leader.leader_id"), facts.leader_id)
    expect.equal(answer, fetch_partition("current_leader.leader_epoch"), facts.leader_epoch)


@case("Fetch", _SOURCE, since=_SINCE, listener=Listener.CONTROLLER)
def newer_leader_epoch(controller: Subject, version: int) -> None:
    """A leader epoch above the leader's gets UNKNOWN_LEADER_EPOCH.

    Fetch offset 0 with a much larger epoch.
    """
    facts = quorum_facts(controller)
    request = metadata_fetch(
        version, offset=0, epoch=facts.leader_epoch + 1000, last_fetched_epoch=0
    )
    answer = controller.ask(request, version, FetchResponse)
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_LEADER_EPOCH)


@case("Fetch", "KIP-595, Log divergence", since=_SINCE, listener=Listener.CONTROLLER)
def diverging_epoch(controller: Subject, version: int) -> None:
    """A position that the leader's log does not have gets a diverging epoch.

    Fetch an offset far beyond the log's end with the leader's epoch as the last fetched one: the
    response has the end of the leader's log, and no records.
    """
    facts = quorum_facts(controller)
    epoch = facts.leader_epoch
    request = metadata_fetch(version, offset=1 << 40, epoch=epoch, last_fetched_epoch=epoch)
    answer = controller.ask(request, version, FetchResponse)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, fetch_partition("diverging_epoch.epoch"), epoch)
    path = fetch_partition("diverging_epoch.end_offset")
    end = expect.at(answer, path)
    holds = isinstance(end, int) and end >= facts.high_watermark
    expect.true(holds, f"at least {facts.high_watermark}", end, path)


@case("Fetch", _SOURCE, since=_SINCE, listener=Listener.CONTROLLER)
def other_cluster(controller: Subject, version: int) -> None:
    """A replica of another cluster is refused with INCONSISTENT_CLUSTER_ID.

    Fetch with another cluster id, twice: each request has one response.
    """
    facts = quorum_facts(controller)
    request = metadata_fetch(
        version,
        offset=0,
        epoch=facts.leader_epoch,
        last_fetched_epoch=0,
        cluster_id="anotherClusterAAAAAAAA",
    )
    for _ in range(2):
        answer = controller.ask(request, version, FetchResponse)
        expect.error(answer, "error_code", ErrorCode.INCONSISTENT_CLUSTER_ID)


@case("Fetch", _SOURCE, since=_SINCE, listener=Listener.CONTROLLER)
def other_topic(controller: Subject, version: int) -> None:
    """A fetch of another topic is refused with INVALID_REQUEST.

    Fetch a topic id that is not the metadata log's.
    """
    facts = quorum_facts(controller)
    request = metadata_fetch(version, offset=0, epoch=facts.leader_epoch, last_fetched_epoch=0)
    request.topics[0].topic_id = Uuid(b"conform no topic")
    answer = controller.ask(request, version, FetchResponse)
    expect.error(answer, "error_code", ErrorCode.INVALID_REQUEST)


@case("Fetch", _SOURCE, since=_SINCE, listener=Listener.CONTROLLER)
def two_partitions(controller: Subject, version: int) -> None:
    """A fetch of more than one partition is refused with INVALID_REQUEST.

    Fetch partitions 0 and 0 of the metadata log.
    """
    facts = quorum_facts(controller)
    request = metadata_fetch(version, offset=0, epoch=facts.leader_epoch, last_fetched_epoch=0)
    request.topics[0].partitions *= 2
    answer = controller.ask(request, version, FetchResponse)
    expect.error(answer, "error_code", ErrorCode.INVALID_REQUEST)


@case("Fetch", _SOURCE, since=_SINCE, listener=Listener.CONTROLLER)
def negative_offset(controller: Subject, version: int) -> None:
    """A negative offset is refused with INVALID_REQUEST.

    Fetch offset -5.
    """
    facts = quorum_facts(controller)
    request = metadata_fetch(version, offset=-5, epoch=facts.leader_epoch, last_fetched_epoch=0)
    answer = controller.ask(request, version, FetchResponse)
    expect.error(answer, _CODE, ErrorCode.INVALID_REQUEST)


@case("Fetch", _SOURCE, since=_SINCE, listener=Listener.CONTROLLER)
def records_from_the_start(controller: Subject, version: int) -> None:
    """An observer reads the metadata log from its start.

    Fetch offset 0: the leader's records, or the id of a snapshot that has them.
    """
    facts = quorum_facts(controller)
    request = metadata_fetch(version, offset=0, epoch=facts.leader_epoch, last_fetched_epoch=0)
    answer = controller.ask(request, version, FetchResponse)
    expect.error(answer, _CODE, ErrorCode.NONE)
    found = answer.responses[0].partitions[0]
    snapshot = found.snapshot_id
    has_news = bool(found.records) or (snapshot is not None and snapshot.end_offset > 0)
    expect.true(has_news, "records, or a snapshot", found)


@case("Fetch", _SOURCE, since=_SINCE, listener=Listener.CONTROLLER)
def end_of_the_log(controller: Subject, version: int) -> None:
    """A fetch at the end of the log waits, and gets a response without an error.

    Fetch at the high watermark with a wait of 100 ms.
    """
    facts = quorum_facts(controller)
    epoch = facts.leader_epoch
    request = metadata_fetch(
        version, offset=facts.high_watermark, epoch=epoch, last_fetched_epoch=epoch
    )
    request.max_wait_ms = 100
    answer = controller.ask(request, version, FetchResponse)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, fetch_partition("current_leader.leader_id"), facts.leader_id)
