"""`python -m tests.pages`: run the shell commands of README and docs in page order.

All run in one directory, in the order of docs/README.md after the README. A command runs as the
page has it, but for addresses and directories, which are those of servers that run here: a node as
`make run` starts it, one for tests with a trace, and the README's cluster. A block of properties is
in the file that the text names last before it. A command that does not end by itself is stopped in
order when its page ends. `NOT_RUN` has what is not run, and why.
Walkthroughs are run by `tests.walkthroughs`, the tasks of docs/TASKS.md by tests/test_tasks.py.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.ports import free_port
from tests.process import KRAFT_WIRE
from tests.server_process import ServerProcess
from tests.tidiness import CHECKOUT
from tests.waiting import HANG_S, until

__all__ = ["NOT_RUN", "commands", "pages", "run_pages"]

NOT_RUN = {
    "make ": "CI runs make test-all; the node of `make run` is started below",
    "pip install": "make install installs the same",
    "python -m venv": "make install makes one",
    "docker ": "tests/test_containers.py does it in podman",
    "/opt/": "tests/spark/wheel_cluster.py does it on a standalone cluster",
    "export SPARK_HOME": "tests/spark/wheel_cluster.py does it",
    "$SPARK_HOME": "tests/spark/wheel_cluster.py does it",
    "kraft-wire spark": "tests/spark runs the pipeline in one session",
    "kraft-wire conform": "tests/conformance runs every case",
    "kraft-wire tokens": "tests/cli/test_tokens.py does it on a node with a login",
    "kraft-wire sim": "docs/walkthroughs and the phases of CI run seeds",
    "$ kraft-wire sim": "docs/walkthroughs and the phases of CI run seeds",
    "kafka-configs.sh --bootstrap-server localhost:9092 --entity-type brokers": (
        "tests/apache/test_cordoned_directories.py does it"
    ),
    "kafka-reassign-partitions.sh": "tests/apache/test_replica_moves.py does it",
    "python -m kraft_wire.sim": "tests/sim runs the model",
    "python -m tests.raft.swarm": "tests/raft runs swarms",
}
"""How commands begin that are not run, and what runs them instead."""
ENDLESS = ("kraft-wire server", "kraft-wire proxy", "kraft-wire cluster up")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
_FILE = re.compile(r"`([\w-]+\.properties)`")
_COMMAND = re.compile(r"^(\$ )?(make|kraft-wire|python|pip|docker|printf|kcat|curl|jq|echo)\b")
_CLUSTER = "kraft-wire-cluster"


class Command(NamedTuple):
    """A command of a page, with its number in the page."""

    page: str
    language: str
    text: str

    @property
    def reason(self) -> str | None:
        """Why it is not run."""
        found = [why for start, why in NOT_RUN.items() if self.text.startswith(start)]
        return found[0] if found else None


def pages() -> list[Path]:
    """The README, then the pages of docs in the order of their index."""
    docs = CHECKOUT / "docs"
    listed = re.findall(r"\]\(([\w-]+\.md)\)", (docs / "README.md").read_text("utf-8"))
    return [CHECKOUT / "README.md", *(docs / name for name in dict.fromkeys(listed))]


def commands(page: Path) -> list[Command]:
    """The commands of a page: lines of shell, and Python that talks to the node."""
    found = []
    for language, text in BLOCK.findall(page.read_text("utf-8")):
        if language == "python" and "127.0.0.1:9092" in text:
            found.append(Command(page.name, language, text))
        elif language in ("sh", ""):
            lines = text.replace("\\\n", " ").splitlines()
            shown = [line for line in lines if _COMMAND.match(line) or language == "sh"]
            found += [Command(page.name, "sh", line) for line in shown if line.strip()]
    return found


def files(page: Path) -> dict[str, str]:
    """The properties files that a page shows, by name."""
    text = page.read_text("utf-8")
    found = {}
    for block in BLOCK.finditer(text):
        if block[1] == "properties":
            found[_FILE.findall(text[: block.start()])[-1]] = block[2]
    return found


class TestedServer(ServerProcess):
    """A server for tests: it has an HTTP API for rules, and writes a trace."""

    def __init__(self, directory: Path, trace: Path) -> None:
        super().__init__(directory)
        self._trace = trace

    def arguments(self) -> list[str]:
        options = ["--control", "127.0.0.1:0", "--trace", str(self._trace)]
        return [*super().arguments(), *options]


class Place:
    """The directory in which pages run, and the servers beside it."""

    def __init__(self, directory: Path, node: ServerProcess) -> None:
        self.directory = directory
        self._node = node
        self._ports = {"9092": str(free_port()), "9093": str(free_port())}
        self._endless: list[subprocess.Popen[bytes]] = []
        self.environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "KRAFT_WIRE_BOOTSTRAP_SERVER": node.bootstrap,
        }

    def write(self, name: str, text: str) -> None:
        """Write a file that a page shows, with ports of this place."""
        text = re.sub(r":(9092|9093)\b", lambda port: f":{self._ports[port[1]]}", text)
        (self.directory / name).write_text(text, "utf-8")

    def changed(self, text: str) -> str:
        """Return a command with the addresses and directories of this place."""
        text = text.replace("--listen 127.0.0.1:9192", "--listen 127.0.0.1:0")
        text = re.sub(r"127\.0\.0\.1:9092|kafka\.example:9092", self._node.bootstrap, text)
        text = text.replace("localhost:9092", f"localhost:{self._ports['9092']}")
        text = text.replace("kraft-wire-data", str(self._node.data))
        return re.sub(r"/data/node-(\d)", lambda node: f"{_CLUSTER}/node-{int(node[1]) + 3}", text)

    def run(self, command: Command) -> None:
        """Run a command, which must succeed."""
        text = self.changed(command.text)
        if text.startswith(ENDLESS):
            self._begin(text)
            return
        program = [sys.executable] if command.language == "python" else ["bash", "-euo", "pipefail"]
        done = subprocess.run(
            [*program, "-c", text],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=HANG_S,
        )
        assert done.returncode == 0, f"{command.page}: {text}\n{done.stdout}{done.stderr}"

    def _begin(self, text: str) -> None:
        log = self.directory / f"{len(self._endless)}.log"
        with log.open("wb") as output:
            started = subprocess.Popen(
                ["bash", "-c", f"exec {text}"],
                cwd=self.directory,
                env=self.environment,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
            )
        self._endless.append(started)
        where = re.findall(r"--dir \S+", text)
        is_ready: Callable[[], object] = partial(self._is_cluster_up, " ".join(where).split())
        if not text.startswith("kraft-wire cluster"):
            sign = " is ready on " if text.startswith("kraft-wire server") else "\n"
            is_ready = partial(_has, log, sign)
        until(is_ready, lambda: f"{text}\n{log.read_text()}", every_s=0.5)
        assert started.poll() is None, f"{text}\n{log.read_text()}"

    def _is_cluster_up(self, where: list[str]) -> bool:
        done = subprocess.run(
            ["kraft-wire", "cluster", "status", *where],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=HANG_S,
        )
        return done.returncode == 0 and done.stdout.count(" running ") == 6

    def end_page(self) -> None:
        """Stop what does not end by itself."""
        while self._endless:
            started = self._endless.pop()
            started.send_signal(signal.SIGINT)
            code = started.wait(HANG_S)
            assert code in (0, 130), f"{started.args}: exit code {code}"


def _has(log: Path, sign: str) -> bool:
    return sign in log.read_text()


@contextmanager
def placed() -> Iterator[Place]:
    """A directory with a node, and what pages name: rules of faults, a trace, and an HTTP API."""
    with TemporaryDirectory(prefix="kraft-wire-pages-") as name, ExitStack() as stack:
        folder = Path(name).resolve()
        for each in ("node", "tested"):
            (folder / each).mkdir()
        node = stack.enter_context(ServerProcess(folder / "node"))
        place = Place(folder, node)
        text = (CHECKOUT / "docs" / "FAULTS.md").read_text("utf-8")
        (rules,) = [found for language, found in BLOCK.findall(text) if language == "yaml"]
        (folder / "faults.yaml").write_text(rules)
        tested = stack.enter_context(TestedServer(folder / "tested", folder / "trace.jsonl"))
        kraft_wire = [KRAFT_WIRE, "topics", "list", "-b", tested.bootstrap]
        subprocess.run(kraft_wire, capture_output=True, timeout=HANG_S, check=True)
        place.environment["CONTROL"] = f"http://{tested.ready['control']}"
        try:
            yield place
        finally:
            place.end_page()


def run_pages() -> dict[str, int]:
    """Run all commands; return how many of each page were run."""
    counts = {}
    with placed() as place:
        for page in pages():
            runnable = [each for each in commands(page) if each.reason is None]
            for name, text in files(page).items():
                place.write(name, text)
            for command in runnable:
                place.run(command)
            place.end_page()
            counts[page.name] = len(runnable)
    return counts


def main() -> int:
    """Run the pages, and print what was not run and why."""
    counts = run_pages()
    for page in pages():
        left_out = [each for each in commands(page) if each.reason is not None]
        if counts[page.name] or left_out:
            print(f"{page.name}: {counts[page.name]} run, {len(left_out)} not run")
        for command in left_out:
            print(f"  {command.text.splitlines()[0][:60]}: {command.reason}")
    print(f"{sum(counts.values())} commands run, none failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
