"""README.md, executed: its shell and Python blocks against a server of the test's own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster_command import ClusterCommand
from tests.server_process import ServerProcess
from tests.tidiness import CHECKOUT

README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
ADDRESS = "127.0.0.1:9092"


def block(language: str, containing: str) -> str:
    """The one fenced block of a language that contains a text."""
    found = re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    (chosen,) = [text for text in found if containing in text]
    return chosen


def run(command: list[str], script: str, server: ServerProcess) -> str:
    """Run a block with the server's address and data in place of the README's.

    librdkafka may ask for a producer id while it replaces its first connection, and asks again.
    """
    changed = script.replace(ADDRESS, server.bootstrap).replace("kraft-wire-data", str(server.data))
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "KRAFT_WIRE_BOOTSTRAP": server.bootstrap,
    }
    done = subprocess.run(
        [*command, changed], env=environment, capture_output=True, text=True, timeout=120
    )
    warned = [line for line in done.stderr.splitlines() if "|GETPID|" not in line]
    assert (done.returncode, warned) == (0, []), "a reader would wonder at a warning"
    return done.stdout


@pytest.mark.kcat
@pytest.mark.client
def test_kcat_block_reads_back_what_it_wrote(module_server: ServerProcess) -> None:
    output = run(["bash", "-euc"], block("sh", "kcat"), module_server)
    assert output == "one\ntwo\nthree\n"


@pytest.mark.client
def test_python_block_prints_the_ten_numbers_and_their_files_are_whole(
    module_server: ServerProcess,
) -> None:
    output = run([sys.executable, "-c"], block("python", "Consumer"), module_server)
    assert output.strip() == str(list(range(10)))
    shown = run(["bash", "-euc"], block("sh", "kraft-wire dump"), module_server)
    assert "0 errors" in shown, shown


def test_own_commands_write_read_and_describe(module_server: ServerProcess) -> None:
    output = run(["bash", "-euc"], block("sh", "kraft-wire produce"), module_server)
    assert sorted(output.splitlines()[1:3]) == ["book", "pen"]
    assert output.count("billing  orders") == 3, output


def test_fixture_block_is_a_test_that_passes(tmp_path: Path) -> None:
    file = tmp_path / "test_fixture.py"
    file.write_text(block("python", "def test_order"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_readme_is_one_page() -> None:
    assert len(README.splitlines()) < 120


@pytest.mark.slow
def test_cluster_blocks_run_a_cluster_and_inject_faults(tmp_path: Path) -> None:
    assert block("sh", "cluster up") == "kraft-wire cluster up\n"
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    with ClusterCommand(tmp_path / "kraft-wire-cluster"):
        done = subprocess.run(
            ["bash", "-euc", block("sh", "cluster kill")],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 0, done
    assert "node 6: killed\nnode 6: started\n" in done.stdout
    assert done.stdout.count(" running ") == 6


def test_readme_opens_with_the_two_verbs() -> None:
    first = re.search(r"^```\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert first is not None
    assert first[1].split() == ["make", "run", "make", "test"]
