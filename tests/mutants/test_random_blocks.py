"""Sources that note their blocks: what ran is noted, in this process and in others."""

import base64
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from mutants.random.blocks import HITS_FILE, HITS_MODULE, HITS_SOURCE, Block, blocks_of, noting
from mutants.random.coverage_map import CoverageMap

SOURCE = '''"""A text."""
from __future__ import annotations


class C:
    LIMIT = 1

    def f(self, a):
        """A text."""
        if a:
            return 1
        elif a is None:
            b = 2
        else:
            raise ValueError
        for _ in range(b):
            b += 1
        return b


def g():
    with open("/dev/null"):
        try:
            C().f(0)
        except ValueError:
            pass
    yield 1
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    hits = len(blocks_of("m.py", SOURCE)) + 3
    (tmp_path / HITS_FILE).write_bytes(bytes(hits))
    (tmp_path / "m.py").write_text(noting("m.py", SOURCE, 3))
    (tmp_path / f"{HITS_MODULE}.py").write_text(HITS_SOURCE)
    return tmp_path


def run(folder: Path, code: str) -> list[int]:
    """The first lines of the blocks that a program runs, which may be killed."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    subprocess.run([sys.executable, "-c", f"import m, os; {code}"], env=environment, check=False)
    hits = (folder / HITS_FILE).read_bytes()
    assert hits[:3] == bytes(3)
    blocks = blocks_of("m.py", SOURCE)
    return [block.first for block, hit in zip(blocks, hits[3:], strict=True) if hit]


def test_blocks_are_numbered_by_function() -> None:
    blocks = blocks_of("m.py", SOURCE)
    assert [(one.function, one.number, one.first) for one in blocks] == [
        *(("C.f", number, line) for number, line in enumerate([10, 11, 12, 13, 15, 16, 17, 18])),
        *(("g", number, line) for number, line in enumerate([22, 23, 24, 26, 27])),
    ]
    assert blocks[0] == Block("m.py", "C.f", 0, blocks[0].digest, 10, 15)
    assert len({one.digest for one in blocks}) == 2


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("m.C.LIMIT", []),
        ("m.C().f(1)", [10, 11]),
        ("m.C().f(None)", [10, 12, 13, 16, 17, 18]),
        ("list(m.g())", [10, 12, 15, 22, 23, 24, 26, 27]),
        ("m.C().f(1); os.kill(os.getpid(), 9)", [10, 11]),
    ],
)
def test_blocks_that_ran_are_noted(folder: Path, code: str, lines: list[int]) -> None:
    assert run(folder, code) == lines


def test_what_nothing_runs_is_listed(tmp_path: Path) -> None:
    """Not listed: a function that was edited since, of which nothing is known, and a mere `...`."""
    source = "def f(x):\n    if x:\n        return 1\n    return 2\n\n\ndef g(x):\n    ...\n"
    blocks = blocks_of("m.py", source)
    rows = [[getattr(one, name) for name in Block.__slots__] for one in blocks]
    (tmp_path / "blocks-b.json").write_text(json.dumps(rows))
    ran = sum(1 << at for at, one in enumerate(blocks) if one.first in (2, 4))
    packed = base64.b64encode(zlib.compress(ran.to_bytes(1, "little"))).decode()
    test = {"test": "t::a", "outcome": "passed", "seconds": 0.1, "hits": packed}
    entry = {"file": "t", "digest": "d", "table": "b", "rows": [test]}
    (tmp_path / "map.jsonl").write_text(json.dumps(entry) + "\n")
    known = CoverageMap(tmp_path)
    found = known.unexecuted({"m.py": source})
    assert [(one.function, one.first) for one in found] == [("f", 3)]
    assert known.unexecuted({"m.py": source.replace("return 1", "return 3")}) == []
