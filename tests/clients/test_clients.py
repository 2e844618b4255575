"""Every scenario with every client against our node, one test per cell of the table.

All clients share one node, and one restart of it in the middle. ``python -m tests.clients`` prints
the same as a table, ``--apache`` shows that the harnesses are right.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable

import pytest

from tests import judges
from tests.apache.jars import JarsMissing
from tests.apache.java_process import JavaFailed
from tests.clients.registry import CLIENTS, TABLE_ROWS, Client, HarnessNotBuilt
from tests.clients.running import Result, run_all
from tests.server_process import ServerProcess

Table = dict[str, dict[str, Result]]

pytestmark = [pytest.mark.client, pytest.mark.slow, pytest.mark.timeout(1500)]


def cells(clients: dict[str, Client], scenarios: Iterable[str]) -> list[object]:
    """Client and scenario, marked with the judge that the client needs."""
    return [
        pytest.param(
            client,
            scenario,
            marks=[getattr(pytest.mark, client.judge)] if client.judge else [],
            id=f"{client.name}-{scenario}",
        )
        for client in clients.values()
        for scenario in scenarios
    ]


def why_not_ready(client: Client) -> str | None:
    """What keeps the client's harness from running here, None if nothing does."""
    missing = judges.missing_programs([client.judge] if client.judge else [])
    if missing:
        return judges.not_run_reason(missing)
    try:
        client.command()
    except (HarnessNotBuilt, JavaFailed, JarsMissing, subprocess.TimeoutExpired) as problem:
        return str(problem)
    return None


@pytest.fixture(scope="module")
def table(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Table, dict[str, str]]:
    """The results of all clients that were asked for and are ready, and why the others are not."""
    asked = {
        item.callspec.params["client"].name
        for item in request.session.items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        if "scenario" in item.callspec.params and "client" in item.callspec.params
    }
    chosen = [client for name, client in CLIENTS.items() if name in asked]
    reasons = {client.name: why_not_ready(client) for client in chosen}
    unready = {name: reason for name, reason in reasons.items() if reason is not None}
    settings = {"num.partitions": "4"}
    with ServerProcess(tmp_path_factory.mktemp("clients"), overrides=settings) as server:
        results = run_all([client for client in chosen if client.name not in unready], server)
    return results, unready


@pytest.mark.parametrize(("client", "scenario"), cells(CLIENTS, TABLE_ROWS))
def test_client_scenario_is_as_against_apache(
    table: tuple[Table, dict[str, str]], client: Client, scenario: str
) -> None:
    results, unready = table
    assert client.name not in unready, unready[client.name]
    result = results[client.name][scenario]
    if result.status == "not applicable":
        pytest.skip(f"{client.name} cannot: {result.detail}")
    assert result.green, result.detail
