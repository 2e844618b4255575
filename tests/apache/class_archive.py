"""Keep Apache's classes as the virtual machine holds them: a broker starts with half the work.

``python -m tests.apache.class_archive [RELEASE ...]`` runs one node of each release (4.3.1 if none
is named) and the tools that tests use most, notes which classes they load, and writes them to one
archive beside the jars, once. Without it every test runs all the same. Java itself ignores an
archive of another virtual machine, or of jars that have changed.

Source: JEP 310, application class-data sharing.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.apache import jars
from tests.apache.java_process import LEAN_FLAGS, java_command, run_java
from tests.apache.node import ApacheNode
from tests.apache.tools import MAIN_CLASSES

TOPIC = ("--topic", "classes")
DUMP_SECONDS_MAX = 300


class ArchiveFailed(RuntimeError):
    """A tool or the virtual machine failed; the text is what it wrote."""


def make(release: str) -> Path:
    """Write the archive of a release's classes unless it is there.

    Raises:
        ArchiveFailed: a tool of Apache's, or the writing of the archive, failed.
    """
    archive = jars.class_archive(release)
    if archive.exists():
        return archive
    jars.jar_directory(release)
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".classes-") as scratch:
        names = Path(scratch, "names")
        names.write_text(
            "\n".join(_loaded_classes(Path(scratch), release)) + "\n", encoding="utf-8"
        )
        written = Path(scratch, archive.name)
        _dump(names, written, release)
        written.replace(archive)
    return archive


def _loaded_classes(scratch: Path, release: str) -> list[str]:
    """Names of the classes that a node and the tools load, in the order of their loading."""

    def noted(name: str) -> str:
        return f"-XX:DumpLoadedClassList={scratch / name}.list"

    def run(tool: str, *arguments: str) -> None:
        flags = [noted(f"{tool}{arguments[0]}")]
        done = run_java(
            MAIN_CLASSES[tool], arguments, stdin="one record\n", flags=flags, release=release
        )
        if done.exit_code != 0:
            raise ArchiveFailed(f"{tool}: {done.text}")

    run("kafka-storage", "random-uuid")
    flags = (*LEAN_FLAGS, "-Xms64m", noted("node"))
    with ApacheNode(scratch / "node", flags=flags, release=release) as node:
        at = ("--bootstrap-server", node.bootstrap)
        run("kafka-topics", "--create", *TOPIC, *at)
        if release == jars.RELEASE:  # whose tools the table names
            run("kafka-topics", "--describe", *at)
            run("kafka-console-producer", *TOPIC, *at)
            first = ("--from-beginning", "--max-messages", "1", "--group", "classes")
            run("kafka-console-consumer", *TOPIC, *first, *at)
            run("kafka-consumer-groups", "--describe", "--all-groups", *at)
            run("kafka-configs", "--describe", *TOPIC, "--all", *at)
    lists = sorted(scratch.glob("*.list"), key=lambda each: each.stat().st_mtime)
    lines = (line for each in lists for line in each.read_text(encoding="utf-8").splitlines())
    return list(dict.fromkeys(lines))


def _dump(names: Path, archive: Path, release: str) -> None:
    flags = ["-Xshare:dump", f"-XX:SharedClassListFile={names}", f"-XX:SharedArchiveFile={archive}"]
    done = subprocess.run(
        java_command("", base_flags=["-XX:+UseSerialGC", *flags], release=release)[:-1],
        capture_output=True,
        text=True,
        check=False,
        timeout=DUMP_SECONDS_MAX,
    )
    if done.returncode != 0 or not archive.exists():
        raise ArchiveFailed(done.stdout + done.stderr)


if __name__ == "__main__":
    try:
        for named in sys.argv[1:] or [jars.RELEASE]:
            print(make(named))
    except (ArchiveFailed, jars.JarsMissing) as problem:
        sys.exit(f"error: {problem}")
