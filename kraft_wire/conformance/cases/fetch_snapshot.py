"""FetchSnapshot, API key 59: snapshots of the metadata log, in chunks (KIP-630)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import Listener, case
from kraft_wire.conformance.quorum import quorum_facts, snapshot_request
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch_snapshot import FetchSnapshotResponse

_CODE: Final = "topics[0].partitions[0].error_code"
_SOURCE: Final = "KIP-630, FetchSnapshot"


def _refused(answer: FetchSnapshotResponse, code: ErrorCode) -> None:
    """State that the partition is refused with `code`.

    4.3.1 cannot encode a refusal of a partition: its records are null, and the response becomes
    UNKNOWN_SERVER_ERROR without topics.
    """
    if answer.error_code != ErrorCode.UNKNOWN_SERVER_ERROR:
        expect.error(answer, "error_code", ErrorCode.NONE)
        expect.error(answer, _CODE, code)


@case("FetchSnapshot", _SOURCE, listener=Listener.CONTROLLER)
def unknown_snapshot(controller: Subject, version: int) -> None:
    """A snapshot that the leader does not have gets SNAPSHOT_NOT_FOUND.

    Ask for a snapshot that ends at offset 1 of epoch 0.
    """
    request = snapshot_request(quorum_facts(controller))
    answer = controller.ask(request, version, FetchSnapshotResponse)
    _refused(answer, ErrorCode.SNAPSHOT_NOT_FOUND)


@case("FetchSnapshot", _SOURCE, listener=Listener.CONTROLLER)
def older_leader_epoch(controller: Subject, version: int) -> None:
    """A leader epoch below the leader's gets FENCED_LEADER_EPOCH.

    Ask with the epoch before the leader's.
    """
    facts = quorum_facts(controller)
    request = snapshot_request(facts, epoch=facts.leader_epoch - 1)
    answer = controller.ask(request, version, FetchSnapshotResponse)
    _refused(answer, ErrorCode.FENCED_LEADER_EPOCH)


@case("FetchSnapshot", _SOURCE, listener=Listener.CONTROLLER)
def newer_leader_epoch(controller: Subject, version: int) -> None:
    """A leader epoch above the leader's gets UNKNOWN_LEADER_EPOCH.

    Ask with a much larger epoch.
    """
    facts = quorum_facts(controller)
    request = snapshot_request(facts, epoch=facts.leader_epoch + 1000)
    answer = controller.ask(request, version, FetchSnapshotResponse)
    _refused(answer, ErrorCode.UNKNOWN_LEADER_EPOCH)


@case("FetchSnapshot", _SOURCE, listener=Listener.CONTROLLER)
def other_cluster(controller: Subject, version: int) -> None:
    """A replica of another cluster is refused with INCONSISTENT_CLUSTER_ID.

    Ask with another cluster id.
    """
    request = snapshot_request(quorum_facts(controller), cluster_id="anotherClusterAAAAAAAA")
    answer = controller.ask(request, version, FetchSnapshotResponse)
    expect.error(answer, "error_code", ErrorCode.INCONSISTENT_CLUSTER_ID)


@case("FetchSnapshot", _SOURCE, listener=Listener.CONTROLLER)
def other_topic(controller: Subject, version: int) -> None:
    """A snapshot of another topic gets UNKNOWN_TOPIC_OR_PARTITION.

    Ask for a snapshot of another topic.
    """
    request = snapshot_request(quorum_facts(controller), topic="conform")
    answer = controller.ask(request, version, FetchSnapshotResponse)
    _refused(answer, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
