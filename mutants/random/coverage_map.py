"""Which tests, and which seeds of the simulators, run which block, and how long each takes.

Made by running everything on sources that note their blocks; kept in `var/mutants/`, outside git.
A second call goes on where the first stopped, and adds tests that are new or edited. If a function
was edited since, each of its blocks is covered by what ran any of its old ones. A function that the
map does not know is covered by what runs anything of its module.
"""

import base64
import hashlib
import json
import mmap
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain
from operator import or_
from pathlib import Path
from typing import TextIO

from mutants.overlay import CHECKOUT, Overlay
from mutants.random import judges
from mutants.random.blocks import HITS_FILE, HITS_MODULE, HITS_SOURCE, Block, blocks_of, noting
from mutants.random.fork_server import forked

__all__ = ["SEEDS", "CoverageMap", "Judge", "build", "product_files", "test_files"]

FOLDER = CHECKOUT / "var" / "mutants"
_FILE_BUDGET_S = 900
SEEDS = [
    *(("quorum", seed) for seed in range(150)),
    *(("membership", seed) for seed in range(8_200_000, 8_200_040)),
    *(("cluster", seed) for seed in range(40)),
    *(("transactions", seed) for seed in range(100, 120)),
    *(("groups", seed) for seed in range(200, 230)),
    *(("eligible-replicas", seed) for seed in range(300, 310)),
    *(("directories", seed) for seed in range(400, 420)),
    *(("odd-quorum", seed) for seed in range(500, 530)),
    *(("odd-cluster", seed) for seed in range(600, 620)),
    *(("tools", seed) for seed in range(700, 720)),
]
"""Kind, as `judges` knows it, and seed."""
_SEEDS_AT_A_TIME = 10
_WORTH_COMPILING = 4
_BESIDE_FOLDERS = ("tests/test_frozen.py", "tests/test_model.py", "tests/test_properties.py")
_AS_DIGITS = bytes([48, 49, *[49] * 254])


@dataclass(frozen=True, slots=True)
class Judge:
    """One test or seed of the map."""

    name: str
    """A node id, or `KIND:SEED` of `SEEDS`."""
    seconds: float
    breadth: int
    """How many blocks it runs: the fewer, the more it is about each."""
    trace: str = ""

    @property
    def is_seed(self) -> bool:
        """Whether it is a seed of a simulator."""
        return "::" not in self.name


def product_files() -> list[str]:
    """Return the hand-written files of the package."""
    found = sorted((CHECKOUT / "kraft_wire").rglob("*.py"))
    return [str(one.relative_to(CHECKOUT)) for one in found if "generated" not in one.parts]


def test_files() -> list[str]:
    """Return the files of tests that judge: not those about the checkout, or about mutants."""
    found = sorted((CHECKOUT / "tests").glob("*/**/test_*.py"))
    names = [str(one.relative_to(CHECKOUT)) for one in found]
    names = [one for one in names if not one.startswith(("tests/mutants/", "tests/codegen/"))]
    return [*names, *_BESIDE_FOLDERS]


def tree_digest() -> str:
    """Return a digest of the package, on which the traces of seeds depend."""
    digest = hashlib.blake2b(digest_size=6)
    for name in product_files():
        digest.update((CHECKOUT / name).read_bytes())
    return digest.hexdigest()


class CoverageMap:
    """The map as it is on the disk."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._tables: dict[str, dict[tuple[str, str], list[tuple[int, Block]]]] = {}
        self._rows: list[tuple[Judge, str, int, int]] = []  # judge, table, hits, hits of its import
        self.files: set[str] = set()
        """The files of tests, with their digest, and the seeds that the map has."""
        self._read(folder)

    def covering(self, path: str, function: str, block: Block | None) -> list[Judge]:
        """Return who runs a block, or any block of a function that was edited or has none.

        What runs at import is covered by the module's own tests, and by all where nothing runs it
        later.
        """
        wanted = {
            name: self._mask(table, path, function, block) for name, table in self._tables.items()
        }
        found = {row[0].name: row[0] for row in self._rows if row[2] & wanted[row[1]]}
        importing = [row[0] for row in self._rows if row[3] & wanted[row[1]]]
        found |= {one.name: one for one in _own_tests(path, importing)}
        return list(found.values()) or importing

    def unexecuted(self, sources: Mapping[str, str]) -> list[Block]:
        """Return the blocks of modules, by path, that neither a test nor a seed runs, in order.

        Left out are functions that were edited since they were mapped, and bodies of `...`.
        """
        run, seen = set(), set()
        for name, table in self._tables.items():
            hits = reduce(or_, (row[2] | row[3] for row in self._rows if row[1] == name), 0)
            for index, block in chain.from_iterable(table.values()):
                seen.add((block.path, block.digest))
                if hits >> index & 1:
                    run.add((block.path, block.digest, block.number))
        return [
            one
            for path, source in sources.items()
            for one in blocks_of(path, source)
            if (path, one.digest) in seen
            and (path, one.digest, one.number) not in run
            and not source.splitlines()[one.first - 1].endswith("...")
        ]

    def own_tests(self, path: str) -> list[Judge]:
        """Return the tests of a module that import it."""
        wanted = {name: self._mask(table, path, "", None) for name, table in self._tables.items()}
        return _own_tests(path, [row[0] for row in self._rows if row[3] & wanted[row[1]]])

    @staticmethod
    def _mask(
        table: dict[tuple[str, str], list[tuple[int, Block]]],
        path: str,
        function: str,
        block: Block | None,
    ) -> int:
        known = table.get((path, function), [])
        if not function or not known:
            known = [one for key, each in table.items() if key[0] == path for one in each]
        elif block is not None and known[0][1].digest == block.digest:
            known = [one for one in known if one[1].number == block.number]
        return sum(1 << index for index, _ in known)

    def _read(self, folder: Path) -> None:
        for path in sorted(folder.glob("blocks-*.json")):
            table: dict[tuple[str, str], list[tuple[int, Block]]] = {}
            for index, row in enumerate(json.loads(path.read_text())):
                block = Block(*row)
                table.setdefault((block.path, block.function), []).append((index, block))
            self._tables[path.stem.removeprefix("blocks-")] = table
        newest: dict[str, list[dict[str, object]]] = {}
        record = folder / "map.jsonl"
        text = record.read_text(encoding="utf-8") if record.exists() else ""
        for line in text.splitlines(keepends=True):
            if line.endswith("\n"):
                entry = json.loads(line)
                newest[entry["file"]] = [entry, *entry["rows"]]
        for head, *rows in newest.values():
            self.files.add(f"{head['file']} {head['digest']}")
            at_import = _unpacked(str(head.get("collected", "")))
            for row in rows:
                if row["outcome"] == "passed":
                    hits = _hits_of(row)
                    seconds = float(str(row["seconds"]))
                    judge = Judge(
                        str(row["test"]), seconds, hits.bit_count(), str(row.get("trace", ""))
                    )
                    self._rows.append((judge, str(head["table"]), hits, at_import))


def _own_tests(path: str, tests: Sequence[Judge]) -> list[Judge]:
    """Return those of its package that are named for a module, or else all of its package.

    Other packages may have tests of the same name, which count where its own has none at all.
    """
    package = path.split("/")[1]
    near = [one for one in tests if one.name.startswith(f"tests/{package}/")]
    return [one for one in near or tests if f"/test_{Path(path).stem}.py::" in one.name] or near


def build(say: Callable[[str], None], only: Sequence[str] = (), folder: Path = FOLDER) -> None:
    """Add to the map what it lacks, or only files that begin with one of `only`."""
    folder.mkdir(parents=True, exist_ok=True)
    known = CoverageMap(folder).files
    missing = [one for one in _parts(only) if f"{one.name} {one.digest}" not in known]
    if not missing:
        return
    overlay = Overlay()
    try:
        table, count = _instrumented(overlay, folder)
        if len(missing) >= _WORTH_COMPILING:
            overlay.compile()
        hits_file = overlay.root / HITS_FILE
        hits_file.write_bytes(bytes(count))
        with hits_file.open("r+b") as file, (folder / "map.jsonl").open("a") as record:
            hits = mmap.mmap(file.fileno(), 0)
            for place, one in enumerate(missing):
                say(f"map {place + 1}/{len(missing)} {_add(one, table, hits, overlay, record)}")
    finally:
        overlay.remove()


def _add(one: "_Part", table: str, hits: mmap.mmap, overlay: Overlay, record: TextIO) -> str:
    """Run one part of the map and write down what it hit; a line that says how it went."""
    hits[:] = bytes(len(hits))
    work = partial(one.work, took_hits=partial(_packed, hits))
    answer = forked(work, overlay.root, _FILE_BUDGET_S)
    rows = [line for line in answer.lines if "test" in line]
    entry: dict[str, object] = {"file": one.name, "digest": one.digest, "table": table}
    for line in answer.lines:
        entry |= {"collected": line["collected"]} if "collected" in line else {}
    record.write(json.dumps({**entry, "rows": rows}) + "\n")
    record.flush()
    passed = sum(row["outcome"] == "passed" for row in rows)
    seconds = sum(float(str(row["seconds"])) for row in rows)
    trouble = answer.output if answer.state == "broken" else ""
    return f"{one.name}: {answer.state}, {passed} of {len(rows)} passed, {seconds:.1f} s{trouble}"


@dataclass(frozen=True, slots=True)
class _Part:
    """A file of tests, or a few seeds: what is run in one child."""

    name: str
    digest: str
    """What the map has of it counts while this is the same."""
    work: Callable[..., None]


def _parts(only: Sequence[str]) -> Iterator[_Part]:
    """Yield what the map consists of."""
    tree = tree_digest()
    for start in range(0, len(SEEDS), _SEEDS_AT_A_TIME):
        seeds = SEEDS[start : start + _SEEDS_AT_A_TIME]
        name = f"{seeds[0][0]}:{seeds[0][1]}"
        if not only or name.startswith(tuple(only)):
            yield _Part(name, tree, partial(judges.run_seeds, seeds=seeds))
    for name in test_files():
        if not only or name.startswith(tuple(only)):
            digest = hashlib.blake2b((CHECKOUT / name).read_bytes(), digest_size=6).hexdigest()
            yield _Part(name, digest, partial(judges.run_tests, files=[name]))


def _instrumented(overlay: Overlay, folder: Path) -> tuple[str, int]:
    """Have a copy note its blocks; the name of the table of blocks, and their number."""
    blocks: list[Block] = []
    for name in product_files():
        source = (CHECKOUT / name).read_text(encoding="utf-8")
        overlay.write(name, noting(name, source, len(blocks)))
        blocks += blocks_of(name, source)
    (overlay.root / f"{HITS_MODULE}.py").write_text(HITS_SOURCE, encoding="utf-8")
    text = json.dumps([_row(one) for one in blocks])
    table = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
    (folder / f"blocks-{table}.json").write_text(text, encoding="utf-8")
    return table, len(blocks)


def _row(block: Block) -> list[object]:
    return [getattr(block, name) for name in Block.__slots__]


def _packed(hits: mmap.mmap) -> str:
    """Return which blocks were noted as text, and forget them."""
    found = hits[:]
    hits[:] = bytes(len(found))
    number = int(found.translate(_AS_DIGITS)[::-1], 2)
    raw = number.to_bytes((len(found) + 7) // 8, "little")
    return base64.b64encode(zlib.compress(raw, 6)).decode()


def _hits_of(row: Mapping[str, object]) -> int:
    """Return what a test ran, and what made the fixtures that it shares with others."""
    more = row.get("more_hits", ())
    assert isinstance(more, Sequence), row
    return reduce(or_, map(_unpacked, (str(row["hits"]), *map(str, more))))


def _unpacked(text: str) -> int:
    """Return the blocks of `_packed` as bits of a number."""
    return int.from_bytes(zlib.decompress(base64.b64decode(text)), "little") if text else 0
