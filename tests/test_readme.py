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
    """Run a block with the server's address and data in place of the README's."""
    changed = script.replace(ADDRESS, server.bootstrap).replace("kraft-wire-data", str(server.data))
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "KRAFT_WIRE_BOOTSTRAP": server.bootstrap,
    }
    done = subprocess.run(
        [*command, changed], env=environment, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, ""), "a reader would wonder at a warning"
    return done.stdout


@pytest.mark.kcat
@pytest.mark.client
def test_kcat_block_reads_back_what_it_wrote(module_server: ServerProcess) -> None:
    output = run(["bash", "-euc"], block("sh", "kcat"), module_server)
    assert output.startswith("one\ntwo\nthree\n")
    assert 'topic "readme"' in output


@pytest.mark.client
def test_python_block_prints_the_ten_numbers_and_our_command_shows_them(
    module_server: ServerProcess,
) -> None:
    output = run([sys.executable, "-c"], block("python", "confluent_kafka"), module_server)
    assert output.strip() == str(list(range(10)))
    shown = run(["bash", "-euc"], block("sh", "kraft-wire topics"), module_server)
    assert "numbers" in shown
    assert "FetchRequest" in shown


@pytest.mark.slow
def test_cluster_blocks_run_a_cluster_and_hurt_it(tmp_path: Path) -> None:
    (command,) = block("sh", "cluster up").splitlines()
    program, *arguments = command.split()
    assert (program, arguments[:2]) == ("kraft-wire", ["cluster", "up"])
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    with ClusterCommand(tmp_path / "kraft-wire-cluster", *arguments[2:]):
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
