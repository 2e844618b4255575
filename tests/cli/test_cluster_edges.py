"""`cluster up` where the system under it fails: nobody is left running, nothing is forgotten."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from kraft_wire.cli.cluster.files import ClusterFiles, ClusterState, NodeState
from kraft_wire.cli.cluster.network import ClusterNetwork, missing
from kraft_wire.cli.cluster.processes import ClusterProcesses
from tests.cluster_command import ClusterCommand


def test_node_that_ends_between_two_questions_is_seen_to_end_by_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = NodeState(1, "kraft-wire", 1)
    processes = ClusterProcesses(
        ClusterFiles(tmp_path), ClusterState("id", nodes={1: node}), None, None
    )
    processes.start(1)  # without properties it ends at once
    assert node.pid is not None
    os.waitid(os.P_PID, node.pid, os.WEXITED | os.WNOWAIT)
    with monkeypatch.context() as patched:
        patched.setattr(subprocess.Popen, "poll", lambda child: None)
        processes.look()
    assert node.condition == "running"
    processes.look()
    assert node.condition == "down"
    assert "exited with code 2" in node.note


@pytest.mark.slow
def test_network_that_is_taken_away_leaves_no_node_running_and_no_cut_unknown(
    tmp_path: Path,
) -> None:
    why = missing()
    if why is not None:
        pytest.skip(f"not run: {why}")
    apart = ClusterCommand(tmp_path / "cluster", "--controllers", "2", "--netns")
    apart.begin()
    try:
        apart.until(lambda: sum("started" in line for line in apart.news) == 2)
        state = ClusterFiles(apart.directory).load()
        assert state is not None
        *_, gone = ClusterNetwork.of(state).command(1, [])
        subprocess.run(["ip", "netns", "del", gone], check=True)
        cut = apart.run("partition", "2", "--from", "1")
        assert (cut.returncode, "Cannot open network namespace" in cut.stderr) == (2, True), cut
        told = json.loads(apart.run("status", "--json").stdout)
        assert len(told["cuts"]) == 2, "a cut that failed in the middle can be healed whole"
    finally:
        code = apart.down(at_once=False)
    assert code == 2, apart.text
    assert "Cannot open network namespace" in apart.text
    assert not [each for each in state.nodes.values() if Path(f"/proc/{each.pid}").exists()]
    left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    assert gone[:-1] not in left.stdout
