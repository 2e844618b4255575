"""Benchmarks of a start measure a node, not the compiler of the interpreter."""

from __future__ import annotations

import os
import py_compile
from pathlib import Path

import pytest

from benchmarks import bytecode
from benchmarks.bytecode import is_compiled, require_bytecode, uncompiled


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "module.py"
    path.write_text("VALUE = 1\n")
    return path


def test_source_alone_is_not_compiled(source: Path) -> None:
    assert not is_compiled(source)


@pytest.mark.parametrize("mode", list(py_compile.PycInvalidationMode))
def test_what_the_interpreter_compiled_is(
    source: Path, mode: py_compile.PycInvalidationMode
) -> None:
    py_compile.compile(str(source), invalidation_mode=mode)
    assert is_compiled(source)


@pytest.mark.parametrize("text", ["VALUE = 22\n", "VALUE = 2\n"])
def test_bytecode_of_what_the_source_was_does_not_count(source: Path, text: str) -> None:
    py_compile.compile(
        str(source), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP, doraise=True
    )
    compiled_s = source.stat().st_mtime
    source.write_text(text)
    os.utime(source, (compiled_s + 10, compiled_s + 10))
    assert not is_compiled(source)


def test_bytecode_of_another_interpreter_does_not_count(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    py_compile.compile(str(source))
    monkeypatch.setattr(bytecode, "MAGIC_NUMBER", b"\0\0\r\n")
    assert not is_compiled(source)


def test_modules_of_a_start_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bytecode, "is_compiled", lambda path: False)
    names = {path.name for path in uncompiled()}
    assert {"serve.py", "node.py", "selectors.py"} <= names


def test_nothing_is_measured_without_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bytecode, "uncompiled", lambda: [Path("node.py")])
    with pytest.raises(SystemExit, match=r"^not measured: 1 modules .* node\.py is one"):
        require_bytecode()
    monkeypatch.setattr(bytecode, "uncompiled", list)
    require_bytecode()
