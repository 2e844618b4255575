"""A server does not import what its first client may never need: most of a start is imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

LATER = ("kraft_wire.broker.groups.", "kraft_wire.broker.transactions.coordinator", "typer", "yaml")
IMPORTS = "import sys, kraft_wire.cli.server.command; print(*sys.modules, sep='\\n')"


@pytest.fixture(scope="module")
def imported() -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.parametrize("name", LATER)
def test_server_starts_without(imported: list[str], name: str) -> None:
    assert "kraft_wire.node.node" in imported, "it would not show anything"
    assert [each for each in imported if each.startswith(name)] == []
