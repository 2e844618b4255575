"""Which test proves which requirement: reads the JSON files beside it and the tests' docstrings.

A test traces a requirement by naming its id in its docstring. `python -m tests.kips --write`
writes docs/KIPS.md out of both; `tests/test_docs.py` fails when the page is not what this makes. A
requirement without a test says so, with a date and the place where the test will be; `make kips`
counts these and fails while there are any.
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
_ID = re.compile(r"\b(?:\d{3}|TXN|SEC)-[A-Z]+-\d{2}\b")

HEAD = """# KIPs: requirement, module, test

Written by `python -m tests.kips --write` from `tests/kips/*.json` and the tests' docstrings; a
test fails when this page is out of date, when a requirement has neither a test nor a dated "open",
or when a test names a requirement that does not exist. `make kips` counts, and fails while anything
is open. Where shipped Kafka (4.3.1) differs from the text, the test asserts what is shipped.
Modules are below `kraft_wire/`.
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
    open: str = ""
    """Since when there is no test, and where it will be; empty where there is one."""


@dataclass(frozen=True, slots=True)
class Kip:
    """A KIP whose requirements are traced, or several about one subject."""

    name: str
    """`KIP-595`, or the subject."""
    title: str
    requirements: tuple[Requirement, ...]
    files: tuple[Path, ...]
    """Test modules that trace them."""
    tests: dict[str, list[str]]
    """Test functions by the requirement that they name, in file order."""

    @property
    def untested(self) -> list[Requirement]:
        """What no test names."""
        return [row for row in self.requirements if row.id not in self.tests]


def counted() -> tuple[list[str], bool]:
    """A line for each KIP and for each requirement without a test; whether there is none."""
    lines = []
    for kip in kips():
        total, missing = len(kip.requirements), kip.untested
        lines.append(f"{kip.name}: {total - len(missing)} of {total} with their tests")
        lines += [f"  {row.id} open: {row.open}" for row in missing]
    return lines, not any(kip.untested for kip in kips())


def kips() -> list[Kip]:
    """Every traced KIP, in order."""
    return [_kip(path) for path in sorted(HERE.glob("*.json"))]


def page() -> str:
    """What docs/KIPS.md must contain."""
    return "\n".join([HEAD, *(_section(kip) for kip in kips())])


def _kip(path: Path) -> Kip:
    facts = json.loads(path.read_text(encoding="utf-8"))
    requirements = tuple(Requirement(**row) for row in facts["requirements"])
    tests: dict[str, list[str]] = {}
    elsewhere = [HERE.parent / name for name in facts.get("tests", ())]
    files = (*sorted(HERE.glob(f"test_{path.stem}*.py")), *elsewhere)
    for source in files:
        for identifier, name in _traces(ast.parse(source.read_text(encoding="utf-8"))):
            tests.setdefault(identifier, []).append(name)
    number = facts["kip"]
    name = f"KIP-{number}" if isinstance(number, int) else number
    return Kip(name, facts["title"], requirements, files, tests)


def _traces(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            for identifier in dict.fromkeys(_ID.findall(ast.get_docstring(node) or "")):
                yield identifier, node.name


def _section(kip: Kip) -> str:
    lines = [
        f"## {kip.name}: {kip.title}",
        "",
        _summary(kip),
        "",
        "| Id | Requirement | 4.3.1 differs | Module | Tests |",
        "|---|---|---|---|---|",
    ]
    for row in kip.requirements:
        names = [f"`{name}`" for name in kip.tests.get(row.id, [])] or [f"open: {row.open}"]
        tests = "<br>".join(names)
        lines.append(f"| {row.id} | {row.requirement} | {row.shipped} | `{row.module}` | {tests} |")
    return "\n".join([*lines, ""])


def _summary(kip: Kip) -> str:
    total, missing = len(kip.requirements), len(kip.untested)
    still_open = f", {missing} of them open" if missing else ""
    listed = ", ".join(f"`{path.relative_to(CHECKOUT)}`" for path in kip.files)
    return f"{total} requirements{still_open}; tests in {listed}."
