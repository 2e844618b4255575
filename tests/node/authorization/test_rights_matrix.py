"""Each API and version with each set of the rights it needs: the outcomes of 4.3.1.

`python -m tests.apis.rights_matrix` recorded Apache Kafka's; here the same requests go to our node,
in the same order, from the same addresses.
"""

import json
from typing import Any

import pytest

from kraft_wire.apis.api import ListenerType
from kraft_wire.wire.json_form import message_to_json
from kraft_wire.wire.message import Message
from tests.apis import rights_matrix
from tests.apis.refusals import TOPIC, error_codes
from tests.node.authorization.guarded_node import (
    BROKER_LISTENER,
    CONTROLLER_LISTENER,
    GuardedDoor,
)

LISTENERS = {
    ListenerType.BROKER: BROKER_LISTENER,
    ListenerType.CONTROLLER: CONTROLLER_LISTENER,
}
DIFFERENCES = {
    ("broker", "InitProducerId"): "Apache's node has no block of producer ids in time",
    ("broker", "InitializeShareGroupState"): "our heartbeat has initialised the state by then",
    ("broker", "WriteShareGroupState"): "our heartbeat has initialised the state by then",
    ("controller", "FetchSnapshot"): "Apache fails in itself, ours knows no such partition",
}
"""By listener and API: outcomes that differ for other reasons than rights; of these only the errors
of rights are compared."""
ERRORS_OF_RIGHTS = (29, 30, 31, 53, 65)


class _Node:
    """Our node as the recording asks one."""

    def __init__(self, door: GuardedDoor) -> None:
        self.door = door

    def ask(self, listener: ListenerType, host: str, request: Message, version: int) -> Any:
        answer = self.door.ask(request, version, host=host, listener=LISTENERS[listener])
        self.door.advance(1)
        if isinstance(answer, Message):
            return message_to_json(answer, version)
        return "closed" if answer == "closed" else "no answer"


def comparable(key: tuple[str, str], outcome: Any) -> Any:
    """Return what is compared of an outcome."""
    if key not in DIFFERENCES:
        return outcome
    return sorted({each for each in error_codes(outcome) if each in ERRORS_OF_RIGHTS})


@pytest.fixture(scope="module")
def outcomes() -> dict[tuple[str, str, str, bool, int], Any]:
    """What our node answers to every cell."""
    cells = rights_matrix.cells()
    hosts = rights_matrix.addresses(cells)
    node = _Node(
        GuardedDoor(
            num_partitions="4",
            offsets_topic_num_partitions="4",
            transaction_state_log_num_partitions="4",
        )
    )
    topic_id = rights_matrix.create(node.ask, TOPIC)
    rights_matrix.prepare(node.ask, hosts)
    node.door = node.door.reopened()
    kept = rights_matrix.answers(node.ask, cells, hosts, topic_id)
    return {(*cell.key, cell.version): outcome for cell, outcome in zip(cells, kept, strict=True)}


@pytest.mark.parametrize(
    ("listener", "api"),
    [*dict.fromkeys((c.listener.value, c.api.name) for c in rights_matrix.cells())],
)
def test_rights_have_the_outcomes_of_apache(
    outcomes: dict[tuple[str, str, str, bool, int], Any], listener: str, api: str
) -> None:
    """SEC-API-01, SEC-API-02, SEC-API-14, SEC-API-18, SEC-API-20,
    SEC-ACL-02, SEC-ACL-08, SEC-ACL-14.
    """
    theirs = rights_matrix.recorded()
    keys = [key for key in outcomes if key[:2] == (listener, api)]
    assert keys, "the table names the API"
    different = [
        f"{asker} exists={exists} v{version}: ours {json.dumps(outcomes[key])} "
        f"theirs {json.dumps(theirs[key])}"
        for key in keys
        for (_, _, asker, exists, version) in [key]
        if comparable(key[:2], outcomes[key]) != comparable(key[:2], theirs[key])
    ]
    assert different == []


def test_the_recording_has_every_cell() -> None:
    """Somebody who may do everything but one thing is among the askers of each right."""
    cells = rights_matrix.cells()
    assert {(*cell.key, cell.version) for cell in cells} == rights_matrix.recorded().keys()
    assert len(cells) >= 3_000
