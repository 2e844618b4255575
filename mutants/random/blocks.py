"""Blocks: the pieces of a module that run from beginning to end, and sources that note each run.

A block begins where a body begins, and behind each statement that has bodies of its own. The noting
source is the original with `__hits__[n] = 1` in front of each block. `__hits__` is a file that all
processes map, so that a process that a test started, and killed, has noted its blocks as well.
Lambdas and comprehensions belong to the block that they stand in.
"""

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["HITS_FILE", "HITS_MODULE", "HITS_SOURCE", "Block", "blocks_of", "noting"]

HITS_MODULE = "kraft_wire_mutants_hits"
HITS_FILE = "kraft_wire_mutants.hits"
"""Beside that module: programs that tests start may have another environment."""

HITS_SOURCE = '''"""Made by mutants.random: the file in which blocks that ran are noted."""

import mmap
import os

with open(os.path.join(os.path.dirname(__file__), "HITS_FILE"), "r+b") as file:
    __hits__ = mmap.mmap(file.fileno(), 0)
'''.replace("HITS_FILE", HITS_FILE)
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_BODIES = ("body", "orelse", "finalbody")


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a function."""

    path: str
    function: str
    """Its qualified name, without `<locals>`."""
    number: int
    """Which block of the function it is, in the order of the source."""
    digest: str
    """Of the function's source: an equal digest means equal blocks."""
    first: int
    """Its first line."""
    last: int


def blocks_of(path: str, source: str) -> list[Block]:
    """Return the blocks of a module's functions, in the order in which `noting` counts them."""
    return [block for block, _, _ in _walk(path, ast.parse(source), source.splitlines())]


def noting(path: str, source: str, first_hit: int) -> str:
    """Return a module's source that notes its blocks, the first of them at `first_hit`."""
    tree = ast.parse(source)
    inserts = [
        (body, index, first_hit + order)
        for order, (_, body, index) in enumerate(_walk(path, tree, source.splitlines()))
    ]
    for body, index, hit in reversed(inserts):
        note = ast.parse(f"__hits__[{hit}] = 1").body[0]
        for node in ast.walk(note):
            ast.copy_location(node, body[index])
            if isinstance(node, ast.stmt | ast.expr):
                node.end_lineno, node.end_col_offset = node.lineno, node.col_offset
        body.insert(index, note)
    if inserts:
        tree.body.insert(
            _imports_begin(tree), ast.parse(f"from {HITS_MODULE} import __hits__").body[0]
        )
    return ast.unparse(tree)


def _imports_begin(tree: ast.Module) -> int:
    """Return the index behind the docstring and `from __future__`."""
    index = int(ast.get_docstring(tree) is not None)
    while index < len(tree.body):
        node = tree.body[index]
        if not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        index += 1
    return index


def _walk(
    path: str, tree: ast.Module, lines: list[str]
) -> Iterator[tuple[Block, list[ast.stmt], int]]:
    """Yield each block with the statements that it stands among and the index of its first."""
    for name, function in _functions(tree.body, ""):
        text = "\n".join(lines[function.lineno - 1 : function.end_lineno])
        digest = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
        for number, (body, first, end) in enumerate(_blocks(function.body, True)):
            last = body[end - 1].end_lineno or 0
            yield Block(path, name, number, digest, body[first].lineno, last), body, first


def _functions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, _Function]]:
    """Yield the outermost functions and methods; a function within one belongs to it."""
    for node in body:
        if isinstance(node, _Function):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If | ast.Try | ast.With):
            for inner in _bodies(node):
                yield from _functions(inner, prefix)


def _bodies(node: ast.stmt) -> list[list[ast.stmt]]:
    found = [getattr(node, name) for name in _BODIES if getattr(node, name, None)]
    found += [one.body for one in getattr(node, "handlers", ())]
    found += [one.body for one in getattr(node, "cases", ())]
    return found


def _blocks(body: list[ast.stmt], may_have_text: bool) -> Iterator[tuple[list[ast.stmt], int, int]]:
    """Yield the blocks of a body and of those within, as half-open ranges of statements."""
    start = int(may_have_text and len(body) > 1 and _is_text(body[0]))
    for index, node in enumerate(body):
        if index < start or not (inner := _bodies(node)):
            continue
        yield body, start, index + 1
        start = index + 1
        for each in inner:
            yield from _blocks(each, isinstance(node, _Function | ast.ClassDef))
    if start < len(body):
        yield body, start, len(body)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
