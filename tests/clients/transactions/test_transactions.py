"""Every scenario of transactions with every client on one node of ours, one test per cell."""

from __future__ import annotations

import pytest

from tests.clients.registry import Client
from tests.clients.running import Result
from tests.clients.test_clients import cells, why_not_ready
from tests.clients.transactions.registry import CLIENTS
from tests.clients.transactions.running import NODE_SETTINGS, Ground, run_all
from tests.clients.transactions.scenarios import SCENARIOS
from tests.server_process import ServerProcess

Results = tuple[dict[str, dict[str, Result]], dict[str, str]]

pytestmark = [pytest.mark.client, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The results of all clients that were asked for and are ready, and why the others are not."""
    asked = {
        item.callspec.params["client"].name
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.module is request.module
    }
    chosen = [client for name, client in CLIENTS.items() if name in asked]
    reasons = {client.name: why_not_ready(client) for client in chosen}
    unready = {name: reason for name, reason in reasons.items() if reason is not None}
    home = tmp_path_factory.mktemp("transactions")
    with ServerProcess(home, overrides=NODE_SETTINGS) as server:
        ready = [client for client in chosen if client.name not in unready]
        return run_all(ready, Ground(server.bootstrap, home)), unready


@pytest.mark.parametrize(("client", "scenario"), cells(CLIENTS, SCENARIOS))
def test_transactions_are_as_kafka_promises(table: Results, client: Client, scenario: str) -> None:
    results, unready = table
    assert client.name not in unready, unready[client.name]
    result = results[client.name][scenario]
    if result.status == "not applicable":
        pytest.skip(f"{client.name} cannot: {result.detail}")
    assert result.green, result.detail
