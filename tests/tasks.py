"""`python -m tests.tasks [--write]`: time every task of docs/TASKS.md by Apache's tools and ours.

Two nodes of ours, new and alike, get the same tasks in the order of the table: one from Apache's
tools and kcat, the other from `kraft-wire`. So each command finds what the task before it left.
Apache's tools run in a JVM with the flags of the tests, which starts faster than Apache's scripts.
Every command must succeed. `--write` puts the times into the page. Exit code 1 if ours is slower
than Apache's tool.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

from tests.apache.java_process import LEAN_FLAGS, SHARED, java_command
from tests.apache.tools import MAIN_CLASSES
from tests.server_process import ServerProcess
from tests.tidiness import CHECKOUT

__all__ = ["APACHES", "AUTHORIZER", "CHANGED", "PAGE", "TASKS", "TIMES", "environment_for", "ours"]

PAGE = CHECKOUT / "docs" / "TASKS.md"
ROW = re.compile(r"^\| ([^|]+) \|((?:\\\||[^|])*)\| `((?:\\\||[^`])+)` \|$", re.M)
TIMES = "## Times\n"
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""Without an authorizer a node has no access-control entries."""
_ROWS = ROW.findall(PAGE.read_text("utf-8"))
TASKS = {task: ours.replace("\\|", "|") for task, _, ours in _ROWS}
THEIRS = {task: theirs.strip().strip("`").replace("\\|", "|") for task, theirs, _ in _ROWS}
CHANGED = {
    "move replicas": "topics reassign t --to 0=1",
    "change all brokers' setting": (
        "configs alter --broker-defaults --add-config message.max.bytes=900000"
    ),
    "follow new records": "consume t -o latest -f -n 1",
    "read as a group": "consume t -g g -f -n 1",
}
"""What cannot be run as the table has it, and what is run instead."""
_PLAN = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}'
_KEYED = "--reader-property parse.key=true --reader-property key.separator=:"
_SHOWN = " ".join(
    f"--formatter-property print.{each}=true" for each in ("key", "headers", "offset")
)
_READ = "kafka-console-consumer --topic t --from-beginning --max-messages 4"
APACHES = {
    "move replicas": (
        f"kafka-reassign-partitions --execute --reassignment-json-file <(echo '{_PLAN}')"
    ),
    "change all brokers' setting": (
        "kafka-configs --alter --broker-defaults --add-config message.max.bytes=900000"
    ),
    "write keys and values": f"kafka-console-producer --topic t {_KEYED}",
    "write a header": (
        r"printf 'a:1\tv\n' | kafka-console-producer --topic t"
        " --reader-property parse.headers=true"
    ),
    "write one record": "echo v | kafka-console-producer --topic t",
    "delete a key of a compacted topic": (
        f"echo k:NULL | kafka-console-producer --topic t {_KEYED}"
        " --reader-property null.marker=NULL"
    ),
    "read everything": _READ,
    "follow new records": "kafka-console-consumer --topic t --max-messages 1",
    "show keys, headers and offsets": f"{_READ} {_SHOWN}",
    "copy a topic": (
        "kafka-console-consumer --topic a --from-beginning --max-messages 1"
        " | kafka-console-producer --topic b"
    ),
    "read committed records only": f"{_READ} --isolation-level read_committed",
    "read as a group": f"{_READ} --group g",
}
"""Commands of Apache's tools where the page shows kcat's, or none that ends by itself."""
_RECORD_EVERY_S = 0.02
_UNTIL_WRITING_S = 1.0
_SEGMENT = "a-0/00000000000000000000.log"
_TOOLS = MAIN_CLASSES | {
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
}
_KCAT = "/usr/bin/kcat"
AS_USERS = [flag for flag in LEAN_FLAGS if flag != SHARED]
"""Apache's tools as users run them, who have no archive of their classes."""


@dataclass(frozen=True, slots=True)
class Times:
    """How long one task took; None where Apache's tools do not have it."""

    task: str
    apaches_s: float | None
    kcat_s: float | None
    ours_s: float

    @property
    def is_slower(self) -> bool:
        """Whether ours takes longer than Apache's tool."""
        return self.apaches_s is not None and self.ours_s > self.apaches_s


def environment_for(server: ServerProcess, tools: Path | None = None) -> dict[str, str]:
    """Return the variables of a shell that has our command, and Apache's tools of a directory."""
    places = [str(tools or ""), str(Path(sys.executable).parent), os.environ["PATH"]]
    return {
        **os.environ,
        "PATH": os.pathsep.join(filter(None, places)),
        "KRAFT_WIRE_BOOTSTRAP_SERVER": server.bootstrap,
    }


def run_task(script: str, environment: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run one command as a shell does, with a record on its input."""
    return subprocess.run(
        ["bash", "-uc", script],
        env=environment,
        input="k:v\n",
        capture_output=True,
        text=True,
        timeout=120,
    )


def ours(task: str, data: Path) -> str:
    """Return our command for a task, as a shell takes it."""
    files = {"read a log segment": f"dump --records {data / _SEGMENT}"}
    files["check files for damage"] = f"audit {data}"
    return f"kraft-wire {files.get(task) or CHANGED.get(task, TASKS[task])}"


def apaches(task: str, data: Path) -> str:
    """Return the command of Apache's tools for a task; empty where they have none."""
    command = APACHES.get(task) or (THEIRS[task] if THEIRS[task].startswith("kafka-") else "")
    return command.replace("--files F", f"--files {data / _SEGMENT}")


def kcats(task: str) -> str:
    """Return the command of kcat for a task; empty where the page has none."""
    return THEIRS[task] if "kcat" in THEIRS[task] else ""


def prepare(server: ServerProcess) -> None:
    """Create the topics that tasks take for granted."""
    environment = environment_for(server)
    for topic in ("t", "a", "b"):
        _must_run(f"topics create {topic} -p 2", environment)
    _must_run("produce a -v v", environment)


@contextmanager
def around(task: str, environment: Mapping[str, str]) -> Iterator[None]:
    """Have before a task what it needs, and after it what the next one needs."""
    if task == "create a topic":
        _must_run("topics delete t", environment)
    with _writing(environment) if task == "follow new records" else nullcontext():
        yield
    if task == "delete a topic":
        _must_run("topics create t -p 6", environment)


def _must_run(command: str, environment: Mapping[str, str]) -> None:
    done = run_task(f"kraft-wire {command}", environment)
    assert done.returncode == 0, done.stderr


@contextmanager
def _writing(environment: Mapping[str, str]) -> Iterator[None]:
    """Write a record every few milliseconds, so that there is always a new one to follow."""
    is_done = Event()
    command = ["kraft-wire", "produce", "t"]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE) as producer:
        assert producer.stdin is not None
        records = producer.stdin

        def write() -> None:
            while not is_done.wait(_RECORD_EVERY_S):
                records.write(b"v\n")
                records.flush()
            records.close()

        writer = Thread(target=write)
        writer.start()
        time.sleep(_UNTIL_WRITING_S)
        try:
            yield
        finally:
            is_done.set()
            writer.join()
    assert producer.returncode == 0, producer.returncode


def timed(task: str, script: str, environment: Mapping[str, str]) -> float:
    """Run a task, which must succeed, and return its seconds."""
    with around(task, environment):
        started = time.monotonic()
        done = run_task(script, environment)
        seconds = time.monotonic() - started
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return seconds


def write_tools(folder: Path) -> Path:
    """Write scripts named as Apache's and kcat, which know the server."""
    address = '"$KRAFT_WIRE_BOOTSTRAP_SERVER"'
    for name, main_class in _TOOLS.items():
        to_server = "" if name == "kafka-dump-log" else f"--bootstrap-server {address}"
        java = " ".join(f"'{word}'" for word in java_command(main_class, base_flags=AS_USERS))
        _write_script(folder / name, f'exec {java} {to_server} "$@"')
    _write_script(folder / "kcat", f'exec {_KCAT} -b {address} "$@"')
    return folder


def _write_script(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def measured(folder: Path) -> list[Times]:
    """Run all tasks, each by both."""
    tools = folder / "tools"
    for place in (tools, folder / "apache", folder / "kraft-wire"):
        place.mkdir()
    write_tools(tools)
    found = []
    with ExitStack() as stack:
        servers = [
            stack.enter_context(ServerProcess(folder / name, overrides=AUTHORIZER))
            for name in ("apache", "kraft-wire")
        ]
        for server in servers:
            prepare(server)
        other, own = servers
        with_tools = environment_for(other, tools)
        for task in TASKS:
            scripts = (apaches(task, other.data), kcats(task))
            apaches_s, kcat_s = (
                timed(task, each, with_tools) if each else None for each in scripts
            )
            ours_s = timed(task, ours(task, own.data), environment_for(own))
            found.append(Times(task, apaches_s, kcat_s, ours_s))
            print(row(found[-1]), flush=True)
    return found


def row(times: Times) -> str:
    """Return a row of the table of times."""
    theirs = ["" if each is None else f"{each:.2f}" for each in (times.apaches_s, times.kcat_s)]
    ratio = "" if times.apaches_s is None else f"{times.apaches_s / times.ours_s:.1f}"
    cells = " | ".join((times.task, *theirs, f"{times.ours_s:.2f}", ratio))
    return f"| {cells} |"


def section(found: list[Times]) -> str:
    """Return the section of the page."""
    slower = sum(each.is_slower for each in found)
    compared = sum(each.apaches_s is not None for each in found)
    by_one = f"Apache's tools do {compared} of them by one command"
    when = f"{time.strftime('%-d %B %Y')}, {os.cpu_count()} processors"
    return f"""{TIMES}
`python -m tests.tasks --write`, {when}: seconds of one run each, on new nodes of
ours. {len(found)} tasks; {by_one}, {slower} of those faster.
kcat, which is written in C, starts faster than both.

| task | Apache's tool | kcat | kraft-wire | Apache's / ours |
|---|---:|---:|---:|---:|
{"".join(f"{row(each)}{chr(10)}" for each in found)}"""


def main(arguments: list[str]) -> int:
    """Time the tasks."""
    parser = argparse.ArgumentParser(prog="python -m tests.tasks")
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.name}")
    options = parser.parse_args(arguments)
    with TemporaryDirectory(prefix="kraft-wire-tasks-") as folder:
        found = measured(Path(folder))
    if options.write:
        text = PAGE.read_text("utf-8").partition(TIMES)[0].rstrip("\n")
        PAGE.write_text(f"{text}\n\n{section(found)}", "utf-8")
    slower = [each.task for each in found if each.is_slower]
    print(f"{len(found)} tasks, {len(slower)} slower than Apache's tools or kcat: {slower}")
    return int(bool(slower))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
