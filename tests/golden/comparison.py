"""Run vectors through the wire command and count, per kind, where we and Apache agree.

Four questions to each vector: do we decode it, is our JSON Apache's, does encoding its JSON give
its bytes (canonical ones), do our objects give back its bytes (messages). To a malformed input: is
our verdict Apache's, and does a refusal say where.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.golden.round_trip import round_trip_problem, takes_part
from tests.golden.vectors import Vector, first_difference, read_vectors, same_json
from tests.golden.wire_process import ask

PROBLEMS_SHOWN_MAX = 40


@dataclass(slots=True)
class Tally:
    """How many of how many questions were answered as Apache answers them."""

    asked: int = 0
    right: int = 0

    def count(self, is_right: bool) -> None:
        """Enter one answer."""
        self.asked += 1
        self.right += is_right

    def __str__(self) -> str:
        return f"{self.right}/{self.asked}" if self.asked else "-"


@dataclass(slots=True)
class KindResult:
    """All tallies of one kind."""

    names: set[str] = field(default_factory=set)
    versions: set[tuple[str, int]] = field(default_factory=set)
    vectors: int = 0
    decode: Tally = field(default_factory=Tally)
    json: Tally = field(default_factory=Tally)
    encode: Tally = field(default_factory=Tally)
    round_trip: Tally = field(default_factory=Tally)
    accepted: Tally = field(default_factory=Tally)
    refused: Tally = field(default_factory=Tally)
    located: Tally = field(default_factory=Tally)
    doubtful: Tally = field(default_factory=Tally)

    def tallies(self) -> list[Tally]:
        """The tallies in the order of the table's columns."""
        good = [self.decode, self.json, self.encode, self.round_trip]
        return [*good, self.accepted, self.refused, self.located, self.doubtful]


@dataclass(slots=True)
class Comparison:
    """The whole result: a tally per kind, and the first problems in words."""

    kinds: dict[str, KindResult] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def perfect(self) -> bool:
        """Whether every question was answered as Apache answers it."""
        every = [tally for kind in self.kinds.values() for tally in kind.tallies()]
        return bool(every) and all(tally.right == tally.asked for tally in every)

    def of(self, vector: Vector) -> KindResult:
        """The result of the vector's kind."""
        return self.kinds.setdefault(vector.kind, KindResult())

    def enter(self, tally: Tally, vector: Vector, problem: str | None) -> None:
        """Count one answer; a problem is kept with its vector while there are few."""
        tally.count(problem is None)
        if problem is not None and len(self.problems) < PROBLEMS_SHOWN_MAX:
            shown = vector.hex if len(vector.hex) <= 160 else vector.hex[:160] + "…"
            self.problems.append(f"{vector.label}: {problem}\n    {shown}")


def compare(path: Path) -> Comparison:
    """Ask everything about every vector of a file (or of every file below a folder)."""
    result = Comparison()
    questions = (vector.question(encode=False) for vector in _bytes(path))
    for vector, answer in zip(_bytes(path), ask("decode", questions), strict=True):
        if vector.malformed:
            _enter_malformed(result, vector, answer)
        else:
            _enter_good(result, vector, answer)
    questions = (vector.question(encode=True) for vector in _to_encode(path))
    for vector, answer in zip(_to_encode(path), ask("encode", questions), strict=True):
        wanted = (
            {"error": answer.get("error")} if vector.verdict == "refuse" else {"hex": vector.hex}
        )
        right = all(value is not None and answer.get(key) == value for key, value in wanted.items())
        kind = result.of(vector)
        problem = None if right else _encode_problem(vector, answer)
        result.enter(kind.doubtful if vector.malformed else kind.encode, vector, problem)
    return result


def _encode_problem(vector: Vector, answer: dict[str, Any]) -> str:
    asked = f" of {str(vector.json)[:600]}" if vector.malformed else ""
    return f"encode gave {str(answer)[:200]}, Apache {vector.verdict or 'encodes'}{asked}"


def _vectors(path: Path) -> Iterator[Vector]:
    files: Iterable[Path] = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
    for file in files:
        yield from read_vectors(file)


def _bytes(path: Path) -> Iterator[Vector]:
    return (vector for vector in _vectors(path) if not vector.asks_encode)


def _to_encode(path: Path) -> Iterator[Vector]:
    return (vector for vector in _vectors(path) if vector.canonical or vector.asks_encode)


def _enter_good(result: Comparison, vector: Vector, answer: dict[str, Any]) -> None:
    kind = result.of(vector)
    kind.names.add(vector.name)
    kind.versions.add((vector.name, vector.version))
    kind.vectors += 1
    decoded = "json" in answer
    result.enter(kind.decode, vector, None if decoded else f"decode: {answer.get('error')}")
    if decoded:
        result.enter(kind.json, vector, _json_problem(vector, answer["json"]))
    if takes_part(vector):
        result.enter(kind.round_trip, vector, round_trip_problem(vector))


def _json_problem(vector: Vector, ours: Any) -> str | None:
    return (
        None if same_json(ours, vector.json) else f"JSON at {first_difference(ours, vector.json)}"
    )


def _enter_malformed(result: Comparison, vector: Vector, answer: dict[str, Any]) -> None:
    kind = result.of(vector)
    if vector.verdict == "accept":
        problem = (
            _json_problem(vector, answer["json"])
            if "json" in answer
            else f"we refuse what Apache accepts: {answer.get('error')}"
        )
        result.enter(kind.accepted, vector, problem)
        return
    refused = "error" in answer
    result.enter(kind.refused, vector, None if refused else "we accept what Apache refuses")
    if refused:
        located = isinstance(answer.get("offset"), int)
        result.enter(
            kind.located, vector, None if located else f"no byte position in {answer['error']!r}"
        )
