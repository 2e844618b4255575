"""What a mutant is: a file `<area>/<id>-<title>.toml`, read and held against the code it changes.

A change is a short piece of a function and what stands there instead. It must be found exactly once
(white space apart); otherwise the code has moved, and `StaleMutant` says so: a mutant is maintained
with the code that it spoils. The check is seeds of the quorum's simulator, a crash scenario, spoilt
files, conformance cases or tests; never something that was written for one mutant alone.
"""

import ast
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import indent
from typing import Any

__all__ = ["Change", "Check", "Mutant", "StaleMutant", "load_all", "mutated"]

HERE = Path(__file__).parent
_KEYS = {"id", "title", "mirrors", "budget_s", "check", "change"}


class StaleMutant(Exception):
    """The code that a mutant changes is not where it was."""


@dataclass(frozen=True, slots=True)
class Change:
    """One replacement inside a function, or in a whole module where `function` is empty."""

    module: str
    function: str
    old: str
    new: str

    @property
    def path(self) -> str:
        """The module's file, relative to the checkout."""
        return self.module.replace(".", "/") + ".py"


@dataclass(frozen=True, slots=True)
class Check:
    """What must fail. Which of the lists counts depends on `verb`."""

    verb: str
    """`sim` (a replica), `node` (quorums), `cluster`, `crash`, `flips`, `conform` or `test`."""
    expect: tuple[str, ...] = ()
    """Invariants, or words of the violation, one of which must be named; empty: any will do."""
    seeds: tuple[int, ...] = ()
    storm: bool = False
    focus: str | None = None
    """What seeds are about: "membership" of `node`, "transactions" or "groups" of `cluster`."""
    events: int = 1_200
    names: tuple[str, ...] = ()
    """Crash scenarios, kinds of file, conformance cases, or node ids of tests."""
    states: int = 400
    """Crash states per scenario, or every how manieth damage of a file is tried."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Check":
        """Build one from what TOML or JSON has; `seed_range` is short for a row of seeds."""
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in data.items()
        }
        if "seed_range" in values:
            values["seeds"] = tuple(range(*values.pop("seed_range")))
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One deliberate bug."""

    id: str
    title: str
    mirrors: str
    area: str
    path: Path
    check: Check
    changes: tuple[Change, ...]
    budget_s: int = 180
    modules: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "modules", tuple(one.module for one in self.changes))

    @property
    def file_name(self) -> str:
        """Id and whole title, in lower case, with a dash for all between letters and digits."""
        words = re.findall(r"[a-z0-9]+", self.title.lower())
        return f"{self.id}-{'-'.join(words)}.toml"


def load_all(folder: Path = HERE) -> list[Mutant]:
    """Read the catalogue, by area and id. ValueError where a file is not in its form."""
    found = [_load(path) for path in sorted(folder.glob("*/*.toml"))]
    ids = [one.id for one in found]
    doubled = {one for one in ids if ids.count(one) > 1}
    if doubled:
        raise ValueError(f"more than one mutant is named {', '.join(sorted(doubled))}")
    return found


def _load(path: Path) -> Mutant:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        unknown = data.keys() - _KEYS
        if unknown:
            raise ValueError(f"unknown keys {sorted(unknown)}")
        if path.stem.split("-")[0] != data["id"]:
            raise ValueError(f"the file's name does not begin with {data['id']}")
        return Mutant(
            id=data["id"],
            title=data["title"],
            mirrors=data["mirrors"],
            area=path.parent.name,
            path=path,
            check=Check.of(data["check"]),
            changes=tuple(Change(**{"function": "", **one}) for one in data["change"]),
            budget_s=data.get("budget_s", 180),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path.name}: {error}") from error


def mutated(mutant: Mutant, checkout: Path) -> dict[str, str]:
    """Return the changed source of each file that a mutant touches; StaleMutant says what moved."""
    sources: dict[str, str] = {}
    for change in mutant.changes:
        if change.path not in sources:
            file = checkout / change.path
            if not file.is_file():
                raise StaleMutant(_moved(mutant, change, checkout, "there is no such module"))
            sources[change.path] = file.read_text(encoding="utf-8")
        source = sources[change.path]
        first, last = _lines_of(source, change.function)
        if last == 0:
            raise StaleMutant(_moved(mutant, change, checkout, "there is no such function"))
        lines = source.splitlines(keepends=True)
        body = "".join(lines[first:last])
        places = list(_pattern(change.old).finditer(body))
        if len(places) != 1:
            reason = f"the old text stands there {len(places)} times, not once"
            raise StaleMutant(_moved(mutant, change, checkout, reason))
        body = (
            body[: places[0].start()]
            + _placed(change.new, body, places[0].start())
            + body[places[0].end() :]
        )
        sources[change.path] = "".join([*lines[:first], body, *lines[last:]])
    for name, source in sources.items():
        compile(source, name, "exec")
    return sources


def _pattern(old: str) -> re.Pattern[str]:
    """Match a text however its lines are broken."""
    return re.compile(r"\s+".join(re.escape(word) for word in old.split()))


def _placed(new: str, body: str, start: int) -> str:
    """Give the lines after the first the indentation of the line in which the text begins."""
    line = body[body.rfind("\n", 0, start) + 1 : start]
    margin = line[: len(line) - len(line.lstrip())]
    head, *rest = new.strip("\n").split("\n")
    return "\n".join([head, *(indent(each, margin) for each in rest)])


def _lines_of(source: str, function: str) -> tuple[int, int]:
    """Return the half-open range of lines of a function by its qualified name; (0, 0) for none."""
    if not function:
        return 0, len(source.splitlines())
    nodes: list[ast.stmt] = ast.parse(source).body
    found: ast.stmt | None = None
    for name in function.split("."):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        named = [node for node in nodes if isinstance(node, kinds) and node.name == name]
        if not named:
            return 0, 0
        found, nodes = named[-1], named[-1].body
    assert found is not None, function
    return found.lineno - 1, found.end_lineno or 0


def _moved(mutant: Mutant, change: Change, checkout: Path, reason: str) -> str:
    """Say in one line what moved, and where the text stands now, if it stands anywhere."""
    pattern = _pattern(change.old)
    now = [
        str(path.relative_to(checkout))
        for path in sorted((checkout / "kraft_wire").rglob("*.py"))
        if pattern.search(path.read_text(encoding="utf-8"))
    ]
    hint = f"; it is in {', '.join(now[:3])}" if now else ""
    place = f"{change.module} {change.function}".strip()
    return f"{mutant.id}: {place}: {reason}{hint}: the code moved, the mutant must follow"
