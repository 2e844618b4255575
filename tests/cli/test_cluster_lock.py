"""One `cluster up` of a directory at a time, and what it needs before it begins."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kraft_wire.cli import main
from kraft_wire.cli.cluster import command as cluster
from kraft_wire.cli.cluster.files import CannotRun, ClusterFiles


def test_a_directory_has_one_cluster_at_a_time(tmp_path: Path) -> None:
    files, others = ClusterFiles(tmp_path), ClusterFiles(tmp_path)
    assert not others.is_supervised
    with files.locked():
        assert others.is_supervised
        with pytest.raises(CannotRun, match=f"^a cluster runs in {tmp_path} already$"):
            others.locked().__enter__()
        assert others.is_supervised
    assert not others.is_supervised
    with others.locked():
        assert files.is_supervised
    with pytest.raises(ZeroDivisionError), files.locked():
        raise ZeroDivisionError
    assert not files.is_supervised


def test_other_directories_run_beside_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with ClusterFiles(tmp_path).locked(), ClusterFiles(tmp_path / "a").locked():
        pass


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[ClusterFiles]:
    """The clusters that were begun, of which none runs."""
    found: list[ClusterFiles] = []

    def run_up(files: ClusterFiles, *_: Any, **__: Any) -> None:
        assert ClusterFiles(files.directory).is_supervised
        found.append(files)

    monkeypatch.setattr(cluster, "run_up", run_up)
    return found


@pytest.mark.parametrize("path", ["here", "not/yet/there"])
def test_the_directory_of_a_cluster_is_made(
    path: str, tmp_path: Path, begun: list[ClusterFiles]
) -> None:
    for _ in range(2):
        done = CliRunner().invoke(cluster.app, ["up", "--dir", str(tmp_path / path)])
        assert (done.exit_code, done.output) == (0, "")
    assert [files.directory for files in begun] == [tmp_path / path] * 2


@pytest.mark.parametrize("name", ["stdin", "stdout", "stderr"])
def test_a_stream_that_was_closed_is_filled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python has None for it; what is opened next would get its number."""
    for each in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, each, None if each == name else io.StringIO())
    monkeypatch.setattr(sys, "argv", ["kraft-wire", "--version"])
    main.main()
    filled = getattr(sys, name)
    assert filled.name == "/dev/null"
    assert filled.mode == ("r" if name == "stdin" else "w")
    filled.close()
