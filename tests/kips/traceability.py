"""Which test proves which requirement: reads `kip_*.json` and the docstrings beside it.

A test traces a requirement by naming its id in its docstring. `python -m tests.kips --write`
writes docs/KIPS.md out of both; `tests/test_docs.py` fails when the page is not what this makes.
"""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
PAGE = CHECKOUT / "docs" / "KIPS.md"
_ID = re.compile(r"\b\d{3}-[A-Z]+-\d{2}\b")

HEAD = """# KIPs: requirement, module, test

Written by `python -m tests.kips --write` from `tests/kips/kip_*.json` and the tests' docstrings; a
test fails when this page is out of date, when a requirement has no test, or when a test names a
requirement that does not exist. Where shipped Kafka (4.3.1) differs from the text, the test asserts
what is shipped. Modules are below `kraft_wire/`.
"""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One normative statement of a KIP, in this project's words."""

    id: str
    requirement: str
    section: str
    module: str
    """Below `kraft_wire/`: where the rule lives."""
    shipped: str = ""
    """How 4.3.1 differs from the text, empty where it does not."""


@dataclass(frozen=True, slots=True)
class Kip:
    """A KIP whose requirements are traced."""

    number: int
    title: str
    requirements: tuple[Requirement, ...]
    tests: dict[str, list[str]]
    """Test functions by the requirement that they name, in file order."""


def kips() -> list[Kip]:
    """Every traced KIP, in order."""
    return [_kip(path) for path in sorted(HERE.glob("kip_*.json"))]


def page() -> str:
    """What docs/KIPS.md must contain."""
    return "\n".join([HEAD, *(_section(kip) for kip in kips())])


def _kip(path: Path) -> Kip:
    facts = json.loads(path.read_text(encoding="utf-8"))
    requirements = tuple(Requirement(**row) for row in facts["requirements"])
    source = HERE / f"test_{path.stem}.py"
    tests: dict[str, list[str]] = {}
    for identifier, name in _traces(ast.parse(source.read_text(encoding="utf-8"))):
        tests.setdefault(identifier, []).append(name)
    return Kip(facts["kip"], facts["title"], requirements, tests)


def _traces(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            for identifier in dict.fromkeys(_ID.findall(ast.get_docstring(node) or "")):
                yield identifier, node.name


def _section(kip: Kip) -> str:
    lines = [
        f"## KIP-{kip.number}: {kip.title}",
        "",
        f"{len(kip.requirements)} requirements; tests in `tests/kips/test_kip_{kip.number}.py`.",
        "",
        "| Id | Requirement | 4.3.1 differs | Module | Tests |",
        "|---|---|---|---|---|",
    ]
    for row in kip.requirements:
        tests = "<br>".join(f"`{name}`" for name in kip.tests.get(row.id, []))
        lines.append(f"| {row.id} | {row.requirement} | {row.shipped} | `{row.module}` | {tests} |")
    return "\n".join([*lines, ""])
