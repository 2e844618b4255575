"""What `test_tidy.py` measures: hand-written modules, parsed once, and the figures over them.

`python -m tests.tidiness` prints the figures; nothing here judges.
"""

import ast
import re
import statistics
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
PACKAGES = ("kraft_wire", "codegen", "mutants")
HOSTS = ("kraft_wire/server/", "kraft_wire/cli/", "kraft_wire/sim/", "codegen/", "mutants/")
"""Where clocks, sockets and sets' order may be used; everything else is below the hosts."""

ASSERTING = ("storage", "controller", "metadata", "raft")
"""Packages of `kraft_wire` whose functions state their pre- and postconditions."""

PROTOCOL = ("broker", "controller", "metadata", "raft", "storage", "wire", "node", "settings")
"""Packages of `kraft_wire` whose public functions are documented."""


@dataclass(frozen=True)
class Function:
    """One function or method with the figures that rules compare."""

    module: "Module"
    qualified_name: str
    node: ast.FunctionDef | ast.AsyncFunctionDef

    @property
    def place(self) -> str:
        """Where a reader finds it, in the form that allowances use too."""
        return f"{self.module.path}:{self.qualified_name}"

    @property
    def lines(self) -> int:
        """Length with decorators left out, docstring and comments included."""
        assert self.node.end_lineno is not None
        return self.node.end_lineno - self.node.lineno + 1

    @property
    def is_public(self) -> bool:
        """Whether a reader meets it from outside its module."""
        return not any(part.startswith("_") for part in self.qualified_name.split("."))

    @property
    def is_annotated(self) -> bool:
        """Whether every argument and the result carry a type."""
        given = self.node.args
        arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs]
        arguments += [each for each in (given.vararg, given.kwarg) if each is not None]
        untyped = [a.arg for a in arguments if a.annotation is None]
        return self.node.returns is not None and set(untyped) <= {"self", "cls"}

    @property
    def is_declaration(self) -> bool:
        """Whether it only declares a port: its body is a docstring, an ellipsis, or both."""
        body = self.node.body
        return all(isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) for s in body)

    @property
    def is_documented(self) -> bool:
        """Whether it has a docstring, or needs none: a port's property whose name says it all."""
        is_property = any(ast.unparse(d) == "property" for d in self.node.decorator_list)
        is_bare_port = self.is_declaration and is_property
        return is_bare_port or ast.get_docstring(self.node) is not None


@dataclass(frozen=True)
class Module:
    """One hand-written source file."""

    path: str
    """Relative to the checkout, with forward slashes."""
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text, self.path)

    @property
    def lines(self) -> int:
        """Number of lines, blank ones and comments included."""
        return self.text.count("\n")

    @property
    def dotted_name(self) -> str:
        """The name that an import uses."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def package(self) -> str:
        """The part of `kraft_wire` that it belongs to, or `codegen` or `mutants`."""
        parts = self.path.split("/")
        return parts[1] if parts[0] == "kraft_wire" and len(parts) > 2 else parts[0]

    @property
    def is_below_hosts(self) -> bool:
        """Whether it must behave the same in the simulator as on a socket."""
        return not self.path.startswith(HOSTS)

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """All functions and methods, nested ones too."""
        return tuple(_functions(self, self.tree, ""))

    @cached_property
    def classes(self) -> tuple[ast.ClassDef, ...]:
        """All classes."""
        return tuple(node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef))

    @cached_property
    def asserts(self) -> int:
        """Number of assert statements."""
        return sum(isinstance(node, ast.Assert) for node in ast.walk(self.tree))

    @property
    def is_started(self) -> bool:
        """Whether it is run, not only imported: a package file, or one with a main block."""
        return self.path.endswith("__init__.py") or '__name__ == "__main__"' in self.text

    @cached_property
    def named_in_text(self) -> frozenset[str]:
        """Dotted names of modules that it imports by their name as a string."""
        texts = [n.value for n in ast.walk(self.tree) if isinstance(n, ast.Constant)]
        return frozenset(t for t in texts if isinstance(t, str) and t.startswith("kraft_wire."))

    @cached_property
    def imported(self) -> frozenset[str]:
        """Every dotted name that it imports, `from` targets included as possible modules."""
        names: list[str] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                names += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.append(node.module)
                names += [f"{node.module}.{alias.name}" for alias in node.names]
        return frozenset(names)


def _functions(module: Module, node: ast.AST, prefix: str) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Function(module, prefix + child.name, child)
            yield from _functions(module, child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.ClassDef):
            yield from _functions(module, child, f"{prefix}{child.name}.")
        else:
            yield from _functions(module, child, prefix)


@cache
def modules() -> tuple[Module, ...]:
    """Every hand-written module of the packages that is not new to git, in path order."""
    paths = sorted(path for package in PACKAGES for path in (CHECKOUT / package).rglob("*.py"))
    drafts = _drafts()
    relative = [(path.relative_to(CHECKOUT).as_posix(), path) for path in paths]
    return tuple(
        Module(name, path.read_text(encoding="utf-8"))
        for name, path in relative
        if "/generated/" not in name and name not in drafts
    )


def beside_the_product() -> tuple[Module, ...]:
    """Every module that judges or measures the product, in path order."""
    command = ["git", "ls-files", "tests/*.py", "benchmarks/*.py", "examples/*.py"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    there = [path for path in done.stdout.splitlines() if (CHECKOUT / path).exists()]
    return tuple(Module(path, (CHECKOUT / path).read_text(encoding="utf-8")) for path in there)


def tracked_files() -> tuple[str, ...]:
    """Every path that git tracks."""
    done = subprocess.run(
        ["git", "ls-files"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    return tuple(done.stdout.splitlines())


def _drafts() -> frozenset[str]:
    """Files that git was never told of: work in progress, which nobody else's check may judge."""
    command = ["git", "ls-files", "--others", "--exclude-standard", *PACKAGES]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    return frozenset(done.stdout.splitlines())


@cache
def imported_by_generated_code() -> frozenset[str]:
    """Modules that generated ones import; their text is read, not parsed."""
    generated = CHECKOUT / "kraft_wire" / "wire" / "generated"
    head = re.compile(r"^from (kraft_wire[\w.]*) import", re.MULTILINE)
    texts = [path.read_text(encoding="utf-8") for path in sorted(generated.rglob("*.py"))]
    return frozenset(name for text in texts for name in head.findall(text))


def all_functions() -> list[Function]:
    """Every function of every hand-written module."""
    return [function for module in modules() for function in module.functions]


def asserts_per_function(package: str) -> float:
    """Average over the functions of one package that have a body."""
    chosen = [module for module in modules() if module.package == package]
    functions = [f for module in chosen for f in module.functions if not f.is_declaration]
    return sum(module.asserts for module in chosen) / max(1, len(functions))


def documented_share() -> float:
    """Share of the public functions of the protocol's packages that have a docstring."""
    public = [f for f in all_functions() if f.is_public and f.module.package in PROTOCOL]
    return sum(f.is_documented for f in public) / max(1, len(public))


def quantile(values: list[int], share: float) -> int:
    """Return the value below which `share` of all values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def figures() -> list[tuple[str, str, str]]:
    """Name, value and target of each figure of the review table."""
    sizes = [module.lines for module in modules() if module.lines > 1]
    lengths = [function.lines for function in all_functions()]
    annotated = sum(function.is_annotated for function in all_functions())
    rows = [
        ("modules, lines", f"{len(sizes)}, {sum(sizes)}", ""),
        (
            "module median / p90 / max",
            f"{statistics.median(sizes):.0f} / {quantile(sizes, 0.9)} / {max(sizes)}",
            "<= 180 / 400 / 600",
        ),
        (
            "function median / p90 / max",
            f"{statistics.median(lengths):.0f} / {quantile(lengths, 0.9)} / {max(lengths)}",
            "- / <= 40 / 60",
        ),
        ("functions over 60 lines", str(sum(n > 60 for n in lengths)), "0"),
        ("annotated", f"{100 * annotated / len(lengths):.1f} %", "100 %"),
        ("public protocol functions documented", f"{100 * documented_share():.1f} %", ">= 90 %"),
    ]
    for package in ASSERTING:
        rows.append(
            (f"asserts per function, {package}", f"{asserts_per_function(package):.2f}", ">= 1.0")
        )
    hosts = sum(module.lines for module in modules() if module.package == "server")
    rows.append(("lines of the host (server/)", str(hosts), "<= 1600"))
    return rows


def identifiers(module: Module) -> Iterator[tuple[str, int]]:
    """Every name that a module binds or reads as an attribute or argument, with its line."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno


def comments_matching(module: Module, pattern: re.Pattern[str]) -> Iterator[int]:
    """Line numbers whose text matches."""
    for number, line in enumerate(module.text.splitlines(), 1):
        if pattern.search(line):
            yield number


if __name__ == "__main__":
    for name, value, target in figures():
        print(f"{name:40}{value:24}{target}")
