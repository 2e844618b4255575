"""Ports that tests draw: no two processes of a machine have the same one at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import cycle
from pathlib import Path

import pytest

from kraft_wire.cli.cluster import ports as cluster_ports
from tests import ports
from tests.tidiness import CHECKOUT

DRAW = "from tests.ports import free_port; print(free_port(), flush=True); input()"


def drawing(claims: Path) -> subprocess.Popen[bytes]:
    """A process that draws a port, with claims in a directory of its own, and has it until told."""
    environment = {**os.environ, "TMPDIR": str(claims)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    command = [sys.executable, "-c", DRAW]
    return subprocess.Popen(command, cwd=CHECKOUT, env=environment, **pipes)


def test_process_never_draws_a_port_twice() -> None:
    drawn = [ports.free_port() for _ in range(50)]
    assert len({*drawn}) == len(drawn)
    assert all(port in range(*ports.DRAWN) for port in drawn)


def test_cluster_draws_none_of_the_ports_of_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections = tmp_path / "ip_local_port_range"
    connections.write_text("32768\t60999\n")  # as Linux has it, whatever this machine has
    monkeypatch.setattr(cluster_ports, "_CONNECTION_PORTS", connections)
    assert not {*range(*ports.DRAWN)} & {*cluster_ports.free_ports(200)}


def test_port_that_another_process_has_drawn_is_passed_over_until_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ports.free_port()
    claims = tmp_path / ports.CLAIMS.name
    with claims.open("wb") as file, drawing(tmp_path) as other:
        monkeypatch.setattr(ports, "_CLAIMED", file.fileno())
        assert other.stdout is not None
        taken = int(other.stdout.readline())
        monkeypatch.setattr(ports, "_PORTS", cycle((taken, own)))
        assert [ports.free_port(), ports.free_port()] == [own, own]
        other.communicate(b"\n")
        monkeypatch.setattr(ports, "_PORTS", cycle((taken, own)))
        assert ports.free_port() == taken
