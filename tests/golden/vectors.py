"""Golden vectors: one JSON object per line, made by Apache's own classes, never by ours.

A *good* vector is bytes that Apache wrote and the JSON that Apache reads out of them. It is
``canonical`` when its JSON says all that its bytes say, so that encoding the JSON gives the bytes
again. A *malformed* vector carries Apache's verdict, ``accept`` (then with JSON) or ``refuse``; one
that asks to encode is doubtful JSON (a key missing, a number too large, made for another version),
and has bytes where Apache accepts it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent / "corpus"
RECORDS_KIND = "records"


@dataclass(frozen=True, slots=True)
class Vector:
    """One line: what kind of bytes, which bytes, and what Apache says about them."""

    kind: str
    name: str
    version: int
    hex: str
    json: Any
    canonical: bool
    verdict: str | None
    asks_encode: bool = False

    @property
    def malformed(self) -> bool:
        """Whether the bytes were spoiled on purpose."""
        return self.verdict is not None

    @property
    def label(self) -> str:
        """Kind, name and version, for messages."""
        return f"{self.kind} {self.name} v{self.version}"

    def question(self, *, encode: bool) -> str:
        """The input line of the wire command for this vector."""
        asked: dict[str, Any] = {"kind": self.kind, "name": self.name, "version": self.version}
        asked |= {"json": self.json} if encode else {"hex": self.hex}
        return json.dumps(asked, separators=(",", ":"))


def read_vectors(path: Path) -> Iterator[Vector]:
    """Every vector of a file; a first line that says where the bytes came from is passed over."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            found: dict[str, Any] = json.loads(line)
            if "origin" not in found:
                yield Vector(
                    kind=found["kind"],
                    name=found["name"],
                    version=found["version"],
                    hex=found["hex"],
                    json=found.get("json"),
                    canonical=found.get("canonical", False),
                    verdict=found.get("verdict"),
                    asks_encode=found.get("asks") == "encode",
                )


def same_json(ours: Any, apache: Any) -> bool:
    """Equal as the contract means it: integers exactly, reals as numbers with the sign of zero."""
    if isinstance(apache, bool) or isinstance(ours, bool):
        return ours is apache
    if isinstance(apache, float) or isinstance(ours, float):
        return _same_real(ours, apache)
    if isinstance(apache, dict) and isinstance(ours, dict):
        return ours.keys() == apache.keys() and all(
            same_json(ours[key], value) for key, value in apache.items()
        )
    if isinstance(apache, list) and isinstance(ours, list):
        return len(ours) == len(apache) and all(map(same_json, ours, apache))
    return type(ours) is type(apache) and bool(ours == apache)


def _same_real(ours: Any, apache: Any) -> bool:
    numbers = isinstance(ours, int | float) and isinstance(apache, int | float)
    return numbers and ours == apache and math.copysign(1, ours) == math.copysign(1, apache)


def first_difference(ours: Any, apache: Any, path: str = "") -> str:
    """The path of the first place where two JSON values differ, and both values there."""
    if isinstance(apache, dict) and isinstance(ours, dict):
        for key in [*apache, *(key for key in ours if key not in apache)]:
            if key not in ours or key not in apache:
                return f"{path}.{key}: only {'Apache' if key in apache else 'we'} have it"
            if not same_json(ours[key], apache[key]):
                return first_difference(ours[key], apache[key], f"{path}.{key}")
    if isinstance(apache, list) and isinstance(ours, list) and len(ours) == len(apache):
        for index, (mine, theirs) in enumerate(zip(ours, apache, strict=True)):
            if not same_json(mine, theirs):
                return first_difference(mine, theirs, f"{path}[{index}]")
    return f"{path or '.'}: ours {str(ours)[:80]!r}, Apache's {str(apache)[:80]!r}"
