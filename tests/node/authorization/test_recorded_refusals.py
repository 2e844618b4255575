"""Every API and version that is served, asked by nobody: the answers that 4.3.1 gave.

`tests/apis/observed/apache_refusals.jsonl` has 393 of Apache Kafka's; here the same requests go to
our node. Words are compared where they do not show the request object of Java's.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from kraft_wire.apis.api import ListenerType
from kraft_wire.apis.registry import APIS, key_of
from kraft_wire.model import uuid_to_text
from tests.apis.refusals import TOPIC, recorded, request_of
from tests.node.authorization.guarded_node import (
    BROKER_LISTENER,
    CONTROLLER_LISTENER,
    GuardedDoor,
    guarded_node,
)

LISTENERS = {
    ListenerType.BROKER: BROKER_LISTENER,
    ListenerType.CONTROLLER: CONTROLLER_LISTENER,
}
NEEDS_NOTHING = ("ApiVersions", "SaslHandshake", "SaslAuthenticate")
"""Their answers say nothing of rights."""
OF_THE_NODE = ("sessionId", "brokers", "clusterId", "controllerId")
DIFFERENT = {
    (ListenerType.CONTROLLER, "DescribeUserScramCredentials"),
    (ListenerType.CONTROLLER, "DescribeDelegationToken"),
}
"""Apache answers UNKNOWN_SERVER_ERROR to everybody there (docs/DEVIATIONS.md)."""
LEAK = re.compile(r"Request Request\(.*\) needs [A-Z_]+ permission\.")


def cells() -> Iterator[Any]:
    """Every recorded cell of an API that this node serves."""
    for listener, name, version, answer in recorded():
        is_served = APIS[key_of(name)].owner_on(listener) is not None
        if is_served and name not in NEEDS_NOTHING and (listener, name) not in DIFFERENT:
            yield pytest.param(
                listener, name, version, answer, id=f"{listener.value}-{name}-{version}"
            )


@pytest.fixture(scope="module")
def node() -> GuardedDoor:
    return guarded_node(TOPIC)


def compared(answer: Any, topic_id: str) -> Any:
    """Return an answer without what is each node's own; lists in one order."""
    if isinstance(answer, dict):
        return {
            key: "of the node" if key in OF_THE_NODE else compared(value, topic_id)
            for key, value in answer.items()
        }
    if isinstance(answer, list):
        return [compared(each, topic_id) for each in answer]
    if isinstance(answer, str):
        return LEAK.sub("Cluster authorization failed.", answer).replace(topic_id, "TOPIC-ID")
    return answer


@pytest.mark.parametrize(("listener", "name", "version", "theirs"), [*cells()])
def test_nobody_gets_what_apache_gives_nobody(
    node: GuardedDoor, listener: ListenerType, name: str, version: int, theirs: Any
) -> None:
    """SEC-API-01, SEC-API-09, SEC-API-10, SEC-API-11, SEC-API-20, SEC-API-21."""
    topic = node.node.controller.image.topic(TOPIC)
    assert topic is not None
    topic_id = uuid_to_text(topic.topic_id)
    request = request_of(APIS[key_of(name)], version, topic_id)
    ours = node.ask_json(request, version, listener=LISTENERS[listener])
    assert compared(ours, topic_id) == compared(theirs, topic_id)
