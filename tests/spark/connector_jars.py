"""Bring Spark's own Kafka connector, or Delta, into a local folder, through Maven, once.

``python -m tests.spark.connector_jars [delta]`` prints the jars with commas between, as ``--jars``
and ``spark.jars`` want them. The folder is ``var/apache/spark-connector`` or ``var/apache/delta``,
or one of that name in the folder that the environment variable ``KRAFT_WIRE_APACHE_CACHE`` names.
What the jars depend on comes with pyspark; Delta's work on pyspark 4.2. Does not verify the jars
beyond what Maven does itself.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.apache.jars import COMPLETE, JarsMissing, cache_directory

MAVEN_SECONDS_MAX = 900
Coordinates = Sequence[tuple[str, str, str]]
COORDINATES = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)
DELTA_COORDINATES = (
    ("io.delta", "delta-spark_2.13", "4.1.0"),
    ("io.delta", "delta-storage", "4.1.0"),
)

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kraft-wire</groupId><artifactId>spark-connector</artifactId><version>1</version>
  <packaging>pom</packaging>
  <repositories>
    <!-- Spark's parent puts a mirror of its own first; one of the same name switches it off -->
    <repository>
      <id>gcs-maven-central-mirror</id><url>https://disabled.invalid/</url>
      <releases><enabled>false</enabled></releases>
      <snapshots><enabled>false</enabled></snapshots>
    </repository>
  </repositories>
  <dependencies>
{}  </dependencies>
</project>
"""
_DEPENDENCY = (
    "    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
    "</exclusions></dependency>\n"
)


def connector_jars() -> list[str]:
    """The paths of the connector's jars, brought here if they are not complete yet."""
    return _jars("spark-connector", COORDINATES)


def delta_jars() -> list[str]:
    """The paths of Delta's jars, likewise."""
    return _jars("delta", DELTA_COORDINATES)


def _jars(folder: str, coordinates: Coordinates) -> list[str]:
    directory = cache_directory() / folder
    if not (directory / COMPLETE).exists():
        directory.mkdir(parents=True, exist_ok=True)
        _bring(directory, coordinates)
        (directory / COMPLETE).write_text("\n".join(":".join(c) for c in coordinates) + "\n")
    return [str(directory / f"{name}-{version}.jar") for _, name, version in coordinates]


def _bring(directory: Path, coordinates: Coordinates) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise JarsMissing("mvn is missing: the jars come through Maven")
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".bring-") as scratch:
        jars = Path(scratch) / "jars"
        pom = Path(scratch) / "pom.xml"
        pom.write_text(_POM.format("".join(_DEPENDENCY.format(*c) for c in coordinates)))
        command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
        done = subprocess.run(
            [*command, f"-DoutputDirectory={jars}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=MAVEN_SECONDS_MAX,
        )
        if done.returncode != 0:
            raise JarsMissing(f"mvn failed: {(done.stdout + done.stderr)[-2000:]}")
        for jar in sorted(jars.glob("*.jar")):
            jar.replace(directory / jar.name)


def main() -> int:
    """Print the jars with commas between."""
    try:
        print(",".join(delta_jars() if "delta" in sys.argv[1:] else connector_jars()))
    except (JarsMissing, subprocess.TimeoutExpired) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
