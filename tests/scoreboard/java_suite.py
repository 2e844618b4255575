"""Apache's own integration tests, as published with 4.3.1, on clusters of kraft-wire nodes.

A test with `@ClusterTest` is given a cluster by a class of Apache's that starts brokers inside the
test's own process. Here a class of the same name stands before it, in `java/`, and starts processes
of ours with the roles, settings and features that the annotation asks for. Kafka Streams' tests get
theirs through another class, which is replaced too. Nothing of the tests is changed. One that
reaches for the objects of a broker counts as skipped: ours is another process. So does one whose
settings name a Java class of its own.

With Apache's make the classes of `java/` are left out, and the tests run as their authors run them.
"""

from __future__ import annotations

import os
import subprocess
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.apache import jars, java_process
from tests.process import KRAFT_WIRE
from tests.scoreboard.results import Results, of_junit

__all__ = ["OWN_TESTS", "JavaSuite"]

JUNIT = ("5.13.1", "1.13.1")
"""Of Jupiter and of the platform; 4.3.1 was built with these."""
SOURCES = Path(__file__).parent / "java"
HEAP_MB = 1024
TEST_SECONDS_MAX = 180
SECONDS_MAX = 4 * 60 * 60


def coordinates() -> list[jars.Coordinates]:
    """What Maven is asked for: the tests, what they are run by, and Apache's server."""
    kafka, junit = "org.apache.kafka", "org.junit"
    release = jars.RELEASE
    of_tests = (
        "clients",
        "group-coordinator",
        "metadata",
        "server-common",
        "streams",
        *(each.artifact for each in OWN_TESTS.values()),
    )
    return [
        *jars.coordinates(release),
        *((kafka, _name(each), release, "test") for each in of_tests),
        (kafka, "kafka-streams", release),
        (kafka, "kafka-test-common-runtime", release),
        (kafka, "kafka-test-common-util", release),
        (f"{junit}.jupiter", "junit-jupiter", JUNIT[0]),
        (f"{junit}.platform", "junit-platform-console", JUNIT[1]),
        ("junit", "junit", "4.13.2"),  # a class of a test that it names without need
        ("org.hamcrest", "hamcrest", "3.0"),
        ("org.mockito", "mockito-core", "5.20.0"),
    ]


def classpath() -> str:
    """The class path of the tests, without our classes; what it names is brought once."""
    return jars.classpath_of(f"own-tests-{jars.RELEASE}", coordinates())


def _name(artifact: str) -> str:
    return artifact if artifact.startswith("kafka_") else f"kafka-{artifact}"


@dataclass(frozen=True)
class JavaSuite:
    """Those tests of one published jar that need a cluster."""

    artifact: str
    leave_out: tuple[str, ...] = ()
    """Classes that look for the broker's metrics in their own process."""
    mark: bytes = b"Lorg/apache/kafka/common/test/api/ClusterT"
    """What the classes of such tests name."""

    def title(self) -> str:
        """Return how the table names it."""
        return f"Apache Kafka {jars.RELEASE}, `{_name(self.artifact)}`"

    def prepare(self) -> str:
        """Bring the jars."""
        return classpath()

    def run_on(self, make: str, home: Path) -> Results:
        """Run all tests on one make; each starts clusters of its own."""
        return self.run(make, home / "suite.log")

    def run(self, make: str, log: Path, only: Sequence[str] = ()) -> Results:
        """Run the tests, all or those of the named classes, on one make."""
        path = classpath()
        classes = only or [*self._classes(path)]
        if make == "kraft-wire":
            ours = java_process.compiled((SOURCES,), path, jars.RELEASE)
            path = os.pathsep.join([str(ours), path])
        reports = log.with_suffix(".reports")
        limit = f"junit.jupiter.execution.timeout.testable.method.default={TEST_SECONDS_MAX}s"
        command = [
            *("java", f"-Xmx{HEAP_MB}m", *java_process.LEAN_FLAGS),
            *(f"-Djudge.kraft.wire={KRAFT_WIRE}", "-cp", path),
            *("org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner"),
            *("--details=testfeed", "--disable-ansi-colors", f"--config={limit}"),
            *(f"--reports-dir={reports}", *(f"--select-class={each}" for each in classes)),
        ]
        with log.open("a") as output:
            subprocess.run(
                command,
                cwd=log.parent,
                stdout=output,
                stderr=output,
                check=False,
                timeout=SECONDS_MAX,
            )
        return of_junit(reports / "TEST-junit-jupiter.xml")

    def _classes(self, path: str) -> Iterator[str]:
        file = f"{_name(self.artifact)}-{jars.RELEASE}-test.jar"
        jar = next(each for each in path.split(os.pathsep) if Path(each).name == file)
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.namelist():
                name = entry.removesuffix(".class").replace("/", ".")
                is_class = entry.endswith("Test.class") and "$" not in entry
                if is_class and name not in self.leave_out and self.mark in archive.read(entry):
                    yield name


EMBEDDED = b"org/apache/kafka/streams/integration/utils/EmbeddedKafkaCluster"
OWN_TESTS = {
    "apache-clients": JavaSuite(
        "clients-integration-tests",
        ("org.apache.kafka.clients.MetricsDuringTopicCreationDeletionTest",),
    ),
    "apache-core": JavaSuite("kafka_2.13", ("kafka.server.BrokerMetricNamesTest",)),
    "apache-server": JavaSuite("server"),
    "apache-tools": JavaSuite("tools"),
    "apache-streams": JavaSuite("streams-integration-tests", mark=EMBEDDED),
}
