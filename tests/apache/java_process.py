"""Compile our own Java sources against Apache's jars and run main classes of either.

Class files go to ``var/apache/classes/<hash of sources and release>``, so a change of a source is a
new folder and an old one is never stale. The virtual machine gets little memory and few compiler
threads: several run beside a broker on a small machine. Tools of Apache's with nothing special
about their virtual machine share one (``tests.apache.tool_runner``).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.apache import jars, tool_runner

SOURCE_ROOTS = (Path(__file__).parent / "java", jars.CHECKOUT / "tests" / "clients" / "java")
SHARED = "-Xshare:auto"
"""Take classes from the archive, if there is one (``tests.apache.class_archive``)."""
LEAN_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", SHARED)
COMPILE_SECONDS_MAX = 300
HEAP_MB = 256


class JavaFailed(RuntimeError):
    """A Java program ended with an error; the text holds its standard error."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one finished program left behind."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        """Both streams, for searching and for messages."""
        return self.stdout + self.stderr


def compiled_classes(release: str = jars.RELEASE) -> Path:
    """The folder with the class files of our Java sources, compiled if it is missing."""
    return compiled(SOURCE_ROOTS, jars.classpath(release), release)


def compiled(roots: Sequence[Path], classpath: str, release: str) -> Path:
    """The folder with the class files of all sources below some folders."""
    sources = sorted(source for root in roots for source in root.rglob("*.java"))
    digest = hashlib.sha256(release.encode())
    for source in sources:
        digest.update(source.read_bytes())
    directory = jars.CHECKOUT / "var" / "apache" / "classes" / digest.hexdigest()[:16]
    if directory.exists():
        return directory
    directory.parent.mkdir(parents=True, exist_ok=True)
    scratch = tempfile.mkdtemp(dir=directory.parent, prefix=".compile-")
    command = ["javac", "-proc:none", "-Xlint:all,-processing,-classfile", "-Werror"]
    command += ["-d", scratch, "-cp", classpath, *map(str, sources)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=COMPILE_SECONDS_MAX
    )
    if done.returncode != 0:
        shutil.rmtree(scratch, ignore_errors=True)
        raise JavaFailed(done.stdout + done.stderr)
    try:
        os.rename(scratch, directory)
    except OSError:  # another process compiled the same sources first
        shutil.rmtree(scratch, ignore_errors=True)
    return directory


def java_command(
    main_class: str,
    arguments: Sequence[str] = (),
    *,
    release: str = jars.RELEASE,
    heap_mb: int = HEAP_MB,
    flags: Sequence[str] = (),
    base_flags: Sequence[str] = LEAN_FLAGS,
) -> list[str]:
    """The command that runs ``main_class`` with Apache's jars and, for ``judge.*``, our classes.

    ``base_flags`` keep a test's Java small; a benchmark replaces them by what Apache's script uses.
    What compares times leaves ``SHARED`` out: users have no archive of classes.
    """
    path = jars.classpath(release)
    if main_class.startswith("judge."):
        path = os.pathsep.join([path, str(compiled_classes(release))])
    elif main_class == tool_runner.MAIN_CLASS:
        path = os.pathsep.join([path, str(compiled([tool_runner.SOURCES], path, release))])
    quick = archive_flags(release) if SHARED in base_flags else []
    lean = [*base_flags, *quick, f"-Xmx{heap_mb}m"]
    return ["java", *lean, *flags, "-cp", path, main_class, *arguments]


def archive_flags(release: str = jars.RELEASE) -> list[str]:
    """What makes Java take classes from the archive; nothing where there is none.

    The class path must begin with that of the release.
    """
    archive = jars.class_archive(release)
    return [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off"] if archive.exists() else []


def run_java(
    main_class: str,
    arguments: Sequence[str] = (),
    *,
    stdin: str = "",
    timeout_s: float = 120,
    heap_mb: int = HEAP_MB,
    flags: Sequence[str] = (),
    release: str = jars.RELEASE,
) -> Outcome:
    """Run a main class to its end; the exit code is the caller's to judge.

    A tool of a newer release has a process of its own: the runner is compiled with classes that
    4.4.0 has moved.
    """
    is_shared = main_class.startswith(tool_runner.TOOLS) and not jars.is_newer(release)
    if is_shared and not flags and heap_mb == HEAP_MB:
        command = java_command(tool_runner.MAIN_CLASS, release=release)
        with tool_runner.free_runner(release, command) as runner:
            if runner is not None:
                return Outcome(*runner.run(main_class, arguments, stdin, timeout_s))
    done = subprocess.run(
        java_command(main_class, arguments, release=release, heap_mb=heap_mb, flags=flags),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)
