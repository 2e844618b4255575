"""What a client sees that connects: for our node and for Apache's."""

from __future__ import annotations

import time
from typing import NamedTuple

from kraft_wire.wire.generated.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.server.wire_client import WireClient
from tests.waiting import HANG_S


class Attempt(NamedTuple):
    """A connection that was tried, and what came of its first request."""

    client: WireClient
    outcome: str
    """served, closed or waits"""
    seconds: float


def attempt(bootstrap: str, within_s: float = HANG_S) -> Attempt:
    """Connect, and ask for the versions; the connection stays open."""
    began = time.monotonic()
    client = WireClient(bootstrap)
    outcome = "closed"
    try:
        client.send(ApiVersionsRequest(), 2)
        outcome = answer_of(client, within_s)
    except (ConnectionError, BrokenPipeError):
        pass
    return Attempt(client, outcome, time.monotonic() - began)


def answer_of(client: WireClient, within_s: float = HANG_S) -> str:
    """Wait for the answer to a request that was sent: served, closed or waits."""
    client.sock.settimeout(within_s)
    try:
        return "closed" if client.receive_frame() is None else "served"
    except TimeoutError:
        return "waits"
    except ConnectionError:
        return "closed"


def is_alive(client: WireClient) -> bool:
    """Whether a connection still answers."""
    client.sock.settimeout(HANG_S)
    try:
        return client.call(ApiVersionsRequest(), 2, ApiVersionsResponse).error_code == 0
    except (ConnectionError, AssertionError):
        return False


def set_connection_rate(client: WireClient, address: str | None, rate: float | None) -> None:
    """Set or remove the quota of an address, None for the default."""
    op = OpData(key="connection_creation_rate", value=rate or 0.0, remove=rate is None)
    entity = [EntityData(entity_type="ip", entity_name=address)]
    request = AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=[op])])
    answer = client.call(request, 1, AlterClientQuotasResponse)
    assert answer.entries[0].error_code == 0, answer


def set_of_broker(client: WireClient, broker: str, **values: str | None) -> None:
    """Set or remove dynamic settings of one broker, of all brokers if it has no name."""
    changes = [
        AlterableConfig(
            name=key.replace("__", "."), config_operation=int(value is None), value=value
        )
        for key, value in values.items()
    ]
    resource = AlterConfigsResource(resource_type=4, resource_name=broker, configs=changes)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = client.call(request, 1, IncrementalAlterConfigsResponse)
    assert answer.responses[0].error_code == 0, answer


class Seen(NamedTuple):
    """What a story has shown."""

    outcomes: list[str]
    seconds: float


def several(bootstrap: str, count: int) -> list[WireClient]:
    """Connect in one go, and ask on each connection."""
    clients = [WireClient(bootstrap) for _ in range(count)]
    for client in clients:
        client.send(ApiVersionsRequest(), 2)
    return clients


def story_of_an_address(between: str, exposed: str) -> Seen:
    """14 connections of an address that may make one in a second; then its quota is removed."""
    with WireClient(between) as admin:
        set_connection_rate(admin, None, 1)
        set_connection_rate(admin, "127.0.0.1", 1)
        time.sleep(0.5)  # Apache's broker follows the quota after the answer
        began = time.monotonic()
        clients = several(exposed, 14)
        outcomes = [answer_of(client) for client in clients]
        seconds = time.monotonic() - began
        set_connection_rate(admin, "127.0.0.1", None)
        set_connection_rate(admin, None, None)
    for client in clients:
        client.sock.close()
    return Seen(outcomes, seconds)


def story_of_a_listener(between: str, exposed: str) -> Seen:
    """13 connections of a listener that takes one in a second, and one between brokers.

    The outcome of the latter is the last one; it is asked for while others wait.
    """
    with WireClient(between) as admin:
        key = "listener__name__secure__max__connection__creation__rate"
        set_of_broker(admin, "1", **{key: "1"})
        time.sleep(0.5)  # as above
        began = time.monotonic()
        clients = several(exposed, 13)
        inner = attempt(between)
        outcomes = [answer_of(client) for client in clients]
        seconds = time.monotonic() - began
        assert inner.seconds < seconds / 2, (inner.seconds, seconds)
        set_of_broker(admin, "1", **{key: None})
    for client in [*clients, inner.client]:
        client.sock.close()
    return Seen([*outcomes, inner.outcome], seconds)


def story_of_room(between: str, exposed: str) -> Seen:
    """More connections than `max.connections`, first exposed ones, then one between brokers.

    The outcomes: of the one too many, of the one between brokers, how many are closed for it, and
    of the one too many when there is room again.
    """
    began = time.monotonic()
    with WireClient(between) as admin:
        set_of_broker(admin, "", max__connections="5")
        time.sleep(0.5)  # as above
        clients = [attempt(exposed).client for _ in range(4)]
        waiting = attempt(exposed, within_s=1.5)
        inner = attempt(between)
        closed = [client for client in clients if not is_alive(client)]
        inner.client.sock.close()
        outcome = answer_of(waiting.client)
        set_of_broker(admin, "", max__connections=None)
    for client in [*clients, waiting.client]:
        client.sock.close()
    outcomes = [waiting.outcome, inner.outcome, f"{len(closed)} closed", outcome]
    return Seen(outcomes, time.monotonic() - began)
