"""Bring Apache Kafka's jars of one release into a local folder, through Maven, once.

``python -m tests.apache.jars [RELEASE]`` prints the folder. It is ``var/apache/<release>`` in the
checkout, or ``<folder>/<release>`` if the environment variable ``KRAFT_WIRE_APACHE_CACHE`` names a
folder. A folder with all that is asked for is never touched again: the second call costs nothing.

Which jars: the server (``kafka_2.13``), its command line tools, the metadata shell of releases up
to that of the schemas, the clients and coordinators that come with them, and a log binding that
keeps the tools quiet (releases before 4.0 have one of their own).
Does not verify the jars beyond what Maven does itself.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from kraft_wire.wire.generated.messages import RELEASE

LOG4J = "2.25.3"
CACHE_VARIABLE = "KRAFT_WIRE_APACHE_CACHE"
COMPLETE = ".complete"
CHECKOUT = Path(__file__).resolve().parents[2]
MAVEN_SECONDS_MAX = 900

_POM_HEAD = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kraft-wire</groupId><artifactId>apache-judge</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>
"""
_POM_TAGS = ("groupId", "artifactId", "version", "classifier")
_POM_TAIL = "  </dependencies>\n</project>\n"

Coordinates = tuple[str, ...]
"""Group, artifact, version, and a classifier where the jar has one."""


class JarsMissing(RuntimeError):
    """Maven is absent or could not bring the jars; the text says which."""


def is_newer(release: str) -> bool:
    """Whether a release came after the one whose schemas are served."""
    return _numbers(release) > _numbers(RELEASE)


def _numbers(release: str) -> list[int]:
    return [int(each) for each in release.split(".")]


def coordinates(release: str) -> list[Coordinates]:
    """Everything that is asked of Maven for one release."""
    kafka = "org.apache.kafka"
    log4j = "org.apache.logging.log4j"
    names = ["kafka_2.13", "kafka-tools"]
    if not is_newer(release):
        names.append("kafka-shell")
    wanted = [(kafka, name, release) for name in names]
    if release.startswith("3."):
        return wanted  # which bring a log binding of their own
    return [*wanted, (log4j, "log4j-core", LOG4J), (log4j, "log4j-slf4j-impl", LOG4J)]


def cache_directory() -> Path:
    """The folder that holds one folder of jars per release."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named) if named else CHECKOUT / "var" / "apache"


def streams_coordinates(release: str) -> list[Coordinates]:
    """The same for Kafka Streams, which has clients and a log binding but no server."""
    logging = [each for each in coordinates(release) if "log4j" in each[0]]
    return [("org.apache.kafka", "kafka-streams", release), *logging]


def jar_directory(release: str = RELEASE) -> Path:
    """The folder with all jars of ``release``, brought there if it is not complete yet."""
    return _complete(cache_directory() / release, coordinates(release))


def _complete(directory: Path, wanted: list[Coordinates]) -> Path:
    mark, text = directory / COMPLETE, "\n".join(":".join(c) for c in wanted) + "\n"
    if mark.exists() and mark.read_text() == text:
        return directory
    directory.mkdir(parents=True, exist_ok=True)
    _bring(wanted, directory)
    mark.write_text(text)
    return directory


def classpath(release: str = RELEASE) -> str:
    """A Java class path with every jar of the release, and our quiet log settings first."""
    return _path(jar_directory(release))


def class_archive(release: str = RELEASE) -> Path:
    """Where the classes of a release are kept as Java holds them; see ``class_archive``."""
    return cache_directory() / f"{release}.jsa"


def streams_classpath(release: str = RELEASE) -> str:
    """The same for Kafka Streams; the folder is ``streams-<release>``."""
    return classpath_of(f"streams-{release}", streams_coordinates(release))


def classpath_of(folder: str, wanted: list[Coordinates]) -> str:
    """The same for any jars, kept in a folder of that name."""
    return _path(_complete(cache_directory() / folder, wanted))


def _path(directory: Path) -> str:
    jars = sorted(str(each) for each in directory.glob("*.jar"))
    return os.pathsep.join([str(_log_settings()), *jars])


def _log_settings() -> Path:
    """A jar of our quiet log settings: an archive of classes allows no folder in its path."""
    files = sorted((Path(__file__).parent / "java" / "resources").iterdir())
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in files)).hexdigest()[:16]
    jar = cache_directory() / f"log-settings-{digest}.jar"
    if not jar.exists():
        jar.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=jar.parent, prefix=".settings-") as scratch:
            with zipfile.ZipFile(Path(scratch, jar.name), "w") as archive:
                for each in files:
                    archive.write(each, each.name)
            Path(scratch, jar.name).replace(jar)
    return jar


def _bring(wanted: list[Coordinates], directory: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise JarsMissing("mvn is missing: Apache Kafka's jars come through Maven")
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".bring-") as scratch:
        jars = Path(scratch) / "jars"
        pom = Path(scratch) / "pom.xml"
        pom.write_text(_POM_HEAD + "".join(map(_dependency, wanted)) + _POM_TAIL)
        command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
        command += [f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=MAVEN_SECONDS_MAX
        )
        if done.returncode != 0:
            raise JarsMissing(
                f"mvn failed for {directory.name}: {(done.stdout + done.stderr)[-2000:]}"
            )
        for jar in sorted(jars.glob("*.jar")):
            jar.replace(directory / jar.name)


def _dependency(wanted: Coordinates) -> str:
    tags = zip(_POM_TAGS, wanted, strict=False)
    return (
        f"    <dependency>{''.join(f'<{tag}>{text}</{tag}>' for tag, text in tags)}</dependency>\n"
    )


def main() -> int:
    """Print the folder of the release named on the command line (4.3.1 if none is)."""
    release = sys.argv[1] if len(sys.argv) > 1 else RELEASE
    try:
        directory = jar_directory(release)
    except (JarsMissing, subprocess.TimeoutExpired) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    print(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
