"""Kafka Streams in a streams group (KIP-1071): counts are exact while instances come and go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.client import BrokerConnection
from tests.apache.node import ApacheNode
from tests.apache.tools import run_tool
from tests.server_process import ServerProcess
from tests.streams.groups import CHANGELOG, GROUP, PARTITIONS, REPARTITION, SETTINGS, SOURCE, Run
from tests.streams.verdict import wrong_counts, wrong_store

pytestmark = [pytest.mark.java, pytest.mark.client, pytest.mark.slow, pytest.mark.timeout(600)]
RECORDS = 400
MAKES = {"apache": ApacheNode, "ours": ServerProcess}


@pytest.fixture(params=MAKES)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    overrides = {"num.partitions": "4", **SETTINGS}
    directory = tmp_path / "node"
    directory.mkdir()
    with MAKES[request.param](directory, overrides=overrides) as running:
        yield running


def standby_tasks(group: Any) -> int:
    return sum(
        len(tasks["partitions"])
        for each in group["members"]
        for tasks in each["assignment"]["standbyTasks"]
    )


def told(node: Any, *what: str) -> str:
    done = run_tool("kafka-streams-groups", ["--bootstrap-server", node.bootstrap, *what])
    assert done.exit_code == 0, done.text
    return done.stdout


def test_counts_are_exact_while_instances_come_and_are_killed(node: Any, tmp_path: Path) -> None:
    with closing(BrokerConnection(node.bootstrap)) as connection:
        run = Run(tmp_path, node.bootstrap, connection)
        try:
            counts_of_two(run, node)
            counts_after_a_kill(run)
            leaves_and_is_deleted(run, node)
        finally:
            run.close()


def counts_of_two(run: Run, node: Any) -> None:
    """The first instance has all tasks and no standby tasks; the second gets half of them."""
    run.first.start()
    run.feed(RECORDS)
    alone = run.await_tasks(1)
    run.counted()
    assert standby_tasks(alone) == 0
    made = run.cluster.made([REPARTITION, CHANGELOG])
    assert [(name, size) for name, size, _ in made] == [
        (REPARTITION, (PARTITIONS, 1)),
        (CHANGELOG, (PARTITIONS, 1)),
    ]
    assert ("cleanup.policy", "delete") in made[0][2]
    assert ("cleanup.policy", "compact") in made[1][2]
    run.second.start()
    run.feed(RECORDS)
    both = run.await_tasks(2)
    run.counted()
    assert standby_tasks(both) == PARTITIONS, "one of each task that has a store"
    shown = told(node, "--describe", "--group", GROUP, "--members")
    assert len(re.findall(rf"^{GROUP} ", shown, re.MULTILINE)) == len(both["members"])
    offsets = told(node, "--describe", "--group", GROUP, "--offsets")
    topics = set(re.findall(rf"^{GROUP} +(\S+) +\d+ +\d+ *$", offsets, re.MULTILINE))
    assert topics == {SOURCE, REPARTITION}


def counts_after_a_kill(run: Run) -> None:
    """The tasks of a killed instance come to the other, with all counts."""
    run.first.kill()
    run.feed(RECORDS)
    run.await_tasks(1)
    assert wrong_counts(run.fed, run.counted()) == []
    assert wrong_store(run.fed, run.stored()) == []


def leaves_and_is_deleted(run: Run, node: Any) -> None:
    """The last instance leaves when it ends, and the tool deletes the group."""
    run.second.stop()
    run.await_state("Empty")
    assert re.search(rf"^{GROUP} +Empty *$", told(node, "--list", "--state"), re.MULTILINE)
    assert "was successful" in told(node, "--delete", "--group", GROUP)
    assert GROUP not in told(node, "--list").split()
