"""A master and two workers, all from the wheel, on pyspark 4.2: audit and ingest, into Delta too.

Nothing of the checkout is on anybody's path: the verbs run from another folder, by the interpreter
of an environment that has the wheel alone (`tests.spark.wheel_environment`).
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.audit.clean_set import write_clean_set
from tests.process import end
from tests.server_process import ServerProcess
from tests.spark.connector_jars import delta_jars
from tests.spark.standalone import Standalone
from tests.spark.topics_written import LiveTopics
from tests.spark.wheel_environment import clean_environment, wheel_python

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(1500)]

SECONDS_MAX = 600
SMALL = ["--conf", "spark.driver.memory=1g", "--conf", "spark.executor.memory=700m"]


class Verbs:
    """`kraft-wire spark` on the cluster."""

    def __init__(self, cluster: Standalone, python: str, home: Path) -> None:
        self.python = python
        self.home = home
        self._cluster = cluster

    def started(self, *words: str) -> subprocess.Popen[bytes]:
        program = str(Path(self.python).parent / "kraft-wire")
        command = [program, "spark", *words, "--master", self._cluster.url, *SMALL]
        environment = clean_environment() | {"SPARK_LOCAL_IP": "127.0.0.1"}
        with (self.home / "verbs.log").open("ab") as log:
            return subprocess.Popen(
                command, cwd=self.home, env=environment, stdout=subprocess.PIPE, stderr=log
            )

    def run(self, *words: str) -> tuple[int, str]:
        """Exit code and standard output."""
        process = self.started(*words)
        with process:
            output, _ = process.communicate(timeout=SECONDS_MAX)
        return process.returncode, output.decode()

    def applications(self) -> dict[str, int]:
        """How many executors each application had."""
        work = self.home / "cluster" / "work"
        return {each.name: len(list(each.glob("[0-9]*"))) for each in work.glob("app-*")}


@pytest.fixture(scope="module")
def verbs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Verbs]:
    home = tmp_path_factory.mktemp("standalone")
    python = wheel_python()
    with Standalone(home / "cluster", python) as cluster:
        yield Verbs(cluster, python, home)


def test_audit_on_two_workers_names_the_one_fault(verbs: Verbs, tmp_path: Path) -> None:
    nodes = write_clean_set(tmp_path)
    log = max((nodes[1] / "orders-0").glob("*.log"), key=lambda each: each.stat().st_size)
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    code, text = verbs.run("audit", *map(str, nodes), "--json", "--output", str(tmp_path / "out"))
    *findings, last = [json.loads(line) for line in text.splitlines()]
    errors = [each for each in findings if each["severity"] == "error"]
    assert code == 1
    assert [(each["node"], each["topic"], each["file"]) for each in errors] == [
        ("2", "orders", log.name)
    ]
    assert last["summary"]["nodes"] == 3
    assert last["summary"]["partitions"] == 5
    assert (tmp_path / "out" / "findings.parquet").exists()
    assert 2 in verbs.applications().values(), "both workers had an executor"


def test_killed_ingest_into_delta_has_every_record_once(verbs: Verbs, tmp_path: Path) -> None:
    (tmp_path / "node").mkdir()
    jars = ",".join(delta_jars())
    sink, checkpoint = tmp_path / "sink", tmp_path / "checkpoint"
    with ServerProcess(tmp_path / "node") as server:
        topics = LiveTopics(server.bootstrap)
        topic = topics.create("lake")
        topics.write(topic, 3000)
        words = ["ingest", "--bootstrap-servers", server.bootstrap, "--subscribe", topic]
        words += ["--sink", "delta", "--jars", jars, "--output", str(sink)]
        words += ["--checkpoint", str(checkpoint), "--option", "maxOffsetsPerTrigger=500"]
        process = verbs.started(*words)
        with process:
            deadline = time.monotonic() + SECONDS_MAX
            while not list(checkpoint.glob("commits/[1-9]*")):
                assert process.poll() is None, "it ended before it was killed"
                assert time.monotonic() < deadline
                time.sleep(0.05)
            end(process, signal.SIGKILL, 60)
        topics.grow(topic, 3)
        topics.write(topic, 300, partitions=3)
        code, text = verbs.run(*words)
        assert code == 0, text
    found = held(verbs, sink, jars)
    assert found == {str(n): [count, count, 0, count - 1] for n, count in ENDS.items()}


ENDS = {0: 1600, 1: 1600, 2: 100}


def held(verbs: Verbs, sink: Path, jars: str) -> dict[str, list[int]]:
    """Rows, offsets, the lowest and the highest of each partition, as Spark reads them."""
    program = Path(__file__).with_name("sink_rows.py")
    done = subprocess.run(
        [verbs.python, str(program), "delta", str(sink), jars],
        capture_output=True,
        text=True,
        check=False,
        cwd=verbs.home,
        env=clean_environment(),
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    partitions: dict[str, list[int]] = json.loads(done.stdout.splitlines()[-1])["partitions"]
    return partitions
