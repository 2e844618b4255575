"""A mutant as the campaign runs it: its sources, and who covers the lines that it changes.

Drawn at random, or from the catalogue. A line of a function is covered by what runs its block. A
module's or a class's own line runs at import: it is covered by the module's own tests and by what
runs functions that mention the names that it binds, or by what runs anything of the module where
nobody does.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher, unified_diff
from functools import cache

from mutants.catalogue import Mutant, mutated
from mutants.overlay import CHECKOUT
from mutants.random.blocks import Block, blocks_of
from mutants.random.coverage_map import CoverageMap, Judge, product_files
from mutants.random.drawing import Drawn, package_of

__all__ = ["Candidate", "covering", "of_catalogue", "of_drawn", "source_of"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One mutant."""

    id: str
    package: str
    place: str
    operator: str
    old: str
    new: str
    sources: dict[str, str] = field(repr=False)
    reason: str = ""
    """Why nothing can tell it from the code, where that is known."""

    def diff(self) -> str:
        """Return the change as a patch."""
        return "\n".join(
            line
            for path, text in self.sources.items()
            for line in unified_diff(
                source_of(path).splitlines(), text.splitlines(), path, path, lineterm=""
            )
        )


@cache
def source_of(path: str) -> str:
    """Return a file of the checkout as it was when the campaign began."""
    return (CHECKOUT / path).read_text(encoding="utf-8")


def of_drawn(drawn: Drawn, reason: str) -> Candidate:
    """Return a drawn mutant, and why it is equivalent, if it is."""
    place = f"{drawn.path}:{drawn.line} {drawn.function}".strip()
    sources = {drawn.path: drawn.applied(source_of(drawn.path))}
    return Candidate(
        drawn.id, drawn.package, place, drawn.operator, drawn.old, drawn.new, sources, reason
    )


def of_catalogue(mutant: Mutant) -> Candidate:
    """Return a mutant of the catalogue; StaleMutant says what moved."""
    sources = mutated(mutant, CHECKOUT)
    change = mutant.changes[0]
    place = f"{change.path} {change.function}".strip()
    package = package_of(change.path)
    return Candidate(mutant.id, package, place, mutant.title, change.old, change.new, sources)


def covering(candidate: Candidate, known: CoverageMap) -> list[Judge]:
    """Return who runs any of the lines that a mutant changes."""
    found: dict[str, Judge] = {}
    for path, text in candidate.sources.items():
        for line in _changed_lines(source_of(path), text):
            block = _innermost(_blocks(path), line)
            function = block.function if block else _function_at(path, line)
            if function:
                judges = known.covering(path, function, block)
            else:
                users = _users(path, line, known)
                judges = (
                    [*users, *known.own_tests(path)] if users else known.covering(path, "", None)
                )
            found |= {one.name: one for one in judges}
    return list(found.values())


def _changed_lines(before: str, after: str) -> Iterator[int]:
    matcher = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    for tag, start, end, _, _ in matcher.get_opcodes():
        if tag != "equal":
            yield from range(start + 1, max(end, start + 1) + 1)


@cache
def _blocks(path: str) -> list[Block]:
    return blocks_of(path, source_of(path))


def _innermost(blocks: Iterable[Block], line: int) -> Block | None:
    around = [one for one in blocks if one.first <= line <= one.last]
    return min(around, key=lambda one: one.last - one.first, default=None)


@cache
def _tree(path: str) -> ast.Module:
    return ast.parse(source_of(path))


def _function_at(path: str, line: int) -> str:
    """Return the function whose head has a line: its arguments and their defaults."""
    for name, node in _functions(path):
        if node.lineno <= line <= (node.end_lineno or 0):
            return name
    return ""


def _functions(path: str) -> Iterator[tuple[str, ast.stmt]]:
    def within(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.stmt]]:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + node.name, node
            elif isinstance(node, ast.ClassDef):
                yield from within(node.body, f"{prefix}{node.name}.")

    return within(_tree(path).body, "")


def _users(path: str, line: int, known: CoverageMap) -> list[Judge]:
    """Return who runs functions that mention a name that a line outside of functions binds."""
    names = set(_bound(_tree(path).body, line))
    found: dict[str, Judge] = {}
    for where, function in {one for name in names for one in _mentioning(path, name)}:
        found |= {one.name: one for one in known.covering(where, function, None)}
    return list(found.values())


def _mentioning(path: str, name: str) -> set[tuple[str, str]]:
    """Return the functions that mention a name; a private one is its module's own."""
    found = _mentions().get(name, set())
    own = {one for one in found if one[0] == path}
    return own if name.startswith("_") and own else found


def _bound(body: list[ast.stmt], line: int) -> Iterator[str]:
    for node in body:
        if not node.lineno <= line <= (node.end_lineno or 0):
            continue
        if isinstance(node, ast.ClassDef):
            inner = list(_bound(node.body, line))
            yield from inner or [node.name]
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            if isinstance(target, ast.Name):
                yield target.id


@cache
def _mentions() -> dict[str, set[tuple[str, str]]]:
    """Return for each name the functions that mention it, anywhere in the package."""
    found: dict[str, set[tuple[str, str]]] = {}
    for path in product_files():
        for function, node in _functions(path):
            for each in ast.walk(node):
                name = getattr(each, "id", None) or getattr(each, "attr", None)
                if isinstance(name, str):
                    found.setdefault(name, set()).add((path, function))
    return found
