"""The rules of this code base, as tests: sizes, names, leftovers, handler heads, order of sets.

A message has the form `path:line: X, do Y`. Where the tree is not there yet, `tidy_allowances.json`
holds the figure that is tolerated. A figure there may only get stricter, and goes when it is no
longer needed: `test_tidy_allowances.py` sees to that.
"""

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.apis.registry import APIS
from kraft_wire.conformance.case import all_cases
from tests import handler_heads, tidiness
from tests.set_iteration import iterated_sets
from tests.tidiness import CHECKOUT, Module, all_functions, modules
from tests.vacuous_asserts import vacuous_asserts

ALLOWED: dict[str, Any] = json.loads(
    (Path(__file__).parent / "tidy_allowances.json").read_text(encoding="utf-8")
)

MODULE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
PUBLIC_METHODS_MAX = 12
HOST_LINES_MAX = 1600
"""With the process, its listeners and descriptors, framing and the send queue."""

BANNED_NAMES = {
    "term": "leader_epoch",
    "current_term": "leader_epoch",
    "commit_index": "high_watermark",
    "last_index": "log_end_offset",
    "learners": "observers",
    "lso": "last_stable_offset",
    "hw": "high_watermark",
    "leo": "log_end_offset",
    "pid": "producer_id",
}
"""Words for which the KIPs have another; a process id is only known to the hosts."""

BANNED_MODULES = {"utils", "util", "helpers", "helper", "common", "manager", "misc", "shared"}
"""Names that say nothing; name the noun that the module is about."""

LEFTOVERS = re.compile(r"\b(FIXME|XXX|HACK|NotImplementedError|simplified)\b")
IMPORTED_FROM = re.compile(r"^\s*from (kraft_wire[\w.]*) import", re.MULTILINE)
TODO = re.compile(r"\bTODO\b(?!\(#\d+\))")
BARE_IGNORE = re.compile(r"#\s*type:\s*ignore(?!\[[\w, -]+\]\s+#\s*\S)")
BARE_NOQA = re.compile(r"#\s*noqa(?!:\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*\s+#\s*\S)")


def report(offences: list[str]) -> None:
    """Fail with one line per offence."""
    if offences:
        pytest.fail("\n".join(offences), pytrace=False)


def over(figures: dict[str, int], limit: int, allowances: dict[str, int], what: str) -> list[str]:
    """Compare figures with the limit or their allowance."""
    return [
        f"{place}: {figure} {what}, at most {allowances.get(place, limit)}"
        for place, figure in figures.items()
        if figure > allowances.get(place, limit)
    ]


def module_sizes() -> dict[str, int]:
    """Lines by path."""
    return {module.path: module.lines for module in modules()}


def function_lengths() -> dict[str, int]:
    """Lines by place."""
    return {function.place: function.lines for function in all_functions()}


def public_method_counts() -> dict[str, int]:
    """Public methods by path and class."""
    return {
        f"{module.path}:{node.name}": _public_methods(node)
        for module in modules()
        for node in module.classes
    }


def test_module_length_stays_within_the_stop_limit() -> None:
    report(over(module_sizes(), MODULE_LINES_MAX, ALLOWED["module_lines"], "lines"))


def test_function_length_stays_within_the_stop_limit() -> None:
    report(over(function_lengths(), FUNCTION_LINES_MAX, ALLOWED["function_lines"], "lines"))


def test_class_has_few_public_methods() -> None:
    report(
        over(
            public_method_counts(), PUBLIC_METHODS_MAX, ALLOWED["public_methods"], "public methods"
        )
    )


def test_host_is_thin() -> None:
    lines = sum(module.lines for module in modules() if module.package == "server")
    limit = ALLOWED.get("host_lines", HOST_LINES_MAX)
    assert lines <= limit, f"kraft_wire/server: {lines} lines, at most {limit}"


def test_every_function_is_annotated() -> None:
    report([f"{f.place}: not annotated" for f in all_functions() if not f.is_annotated])


@pytest.mark.parametrize("package", tidiness.ASSERTING)
def test_core_states_its_conditions_as_asserts(package: str) -> None:
    wanted = ALLOWED["asserts_per_function"].get(package, 1.0)
    assert wanted <= 1.0, "an allowance is below the target"
    average = tidiness.asserts_per_function(package)
    assert average >= wanted, f"kraft_wire/{package}: {average:.2f} asserts per function"


def test_asserts_can_fail() -> None:
    report(
        [
            f"{module.path}:{line}: cannot fail, assert what may be wrong here or drop it"
            for module in modules()
            for line in vacuous_asserts(module.tree)
        ]
    )


@pytest.mark.parametrize(
    ("source", "is_vacuous"),
    [
        ("def f():\n    assert True, 'always'", True),
        ("def f():\n    assert False, 'never here'", False),
        ("def f(a, b):\n    assert (a == b, 'a tuple')", True),
        ("def f(a):\n    assert a == a", True),
        ("def f(a, b):\n    assert a == b", False),
        ("def f(a):\n    assert len(a) >= 0", True),
        ("def f(a):\n    assert 0 <= len(a)", True),
        ("def f(a):\n    assert len(a) == 0", False),
        ("def f(a):\n    assert 0 <= len(a) <= 3", False),
        ("def f(a: int):\n    assert isinstance(a, int)", True),
        ("def f(a: 'int | str'):\n    assert isinstance(a, (int, str))", True),
        ("def f(a: list[int]):\n    assert isinstance(a, list) and len(a) >= 0", True),
        ("def f(a: int | str):\n    assert isinstance(a, int)", False),
        ("def f(a: int):\n    a = g(a)\n    assert isinstance(a, int)", False),
        ("def f(a: int):\n    assert a is not None", True),
        ("def f(a: int | None):\n    assert a is not None", False),
        ("def f():\n    a = [1]\n    assert a is not None", True),
        ("def f():\n    a = Thing(1)\n    assert isinstance(a, Thing)", True),
        ("def f():\n    a = find(1)\n    assert a is not None", False),
        ("def f(self):\n    self.a = None\n    assert self.a is None", True),
        ("def f(self, b):\n    self.a = b\n    assert self.a == b", True),
        ("def f(self, b):\n    self.a = g(b)\n    assert self.a == b", False),
        ("def f(a):\n    assert a > 0\n    assert a > 0", True),
        ("def f(a):\n    assert a > 0\n    g(a)\n    assert a > 0", False),
        ("def f(a):\n    if a < 3:\n        return\n    assert a >= 3", True),
        ("def f(a):\n    if not a:\n        return\n    assert a", True),
        ("def f(a):\n    if a < 3:\n        a = 3\n    assert a >= 3", False),
        ("def f(a):\n    for b in a:\n        with b:\n            assert b == b", True),
    ],
)
def test_assert_that_cannot_fail_is_found(source: str, is_vacuous: bool) -> None:
    assert bool(list(vacuous_asserts(ast.parse(source)))) is is_vacuous


def test_public_protocol_functions_are_documented() -> None:
    share = tidiness.documented_share()
    public = [f for f in all_functions() if f.is_public and f.module.package in tidiness.PROTOCOL]
    bare = [f"{f.place}: no docstring" for f in public if not f.is_documented]
    if share < ALLOWED.get("documented_share", 0.9):
        report([f"only {100 * share:.1f} % of the public protocol functions:", *bare])


def test_every_module_says_what_it_is() -> None:
    report([f"{m.path}:1: no docstring" for m in modules() if _lacks_docstring(m)])


def test_names_are_the_words_of_the_kips() -> None:
    report(
        [
            f"{module.path}:{line}: {name} is banned, use {BANNED_NAMES[name]}"
            for module in modules()
            if module.is_below_hosts
            for name, line in tidiness.identifiers(module)
            if name in BANNED_NAMES
        ]
    )


def test_module_names_are_nouns_that_say_something() -> None:
    report(
        [
            f"{module.path}: the name says nothing, name the noun it is about"
            for module in modules()
            if BANNED_MODULES & set(re.split(r"[._]", module.dotted_name))
        ]
    )


@pytest.mark.parametrize(
    ("pattern", "remedy"),
    [
        (LEFTOVERS, "finish it, or write it into docs/DEVIATIONS.md"),
        (TODO, "a TODO names its issue, as in TODO(#12)"),
        (BARE_IGNORE, "name the error, and the reason in the same line"),
        (BARE_NOQA, "name the rule, and the reason in the same line"),
    ],
    ids=["leftovers", "todo", "type-ignore", "noqa"],
)
def test_nothing_is_left_over(pattern: re.Pattern[str], remedy: str) -> None:
    tolerated = ALLOWED["leftovers"]
    for module in modules():
        lines = list(tidiness.comments_matching(module, pattern))
        if len(lines) > tolerated.get(module.path, 0):
            report([f"{module.path}:{line}: {remedy}" for line in lines])


@pytest.mark.parametrize("pattern", [BARE_IGNORE, BARE_NOQA], ids=["type-ignore", "noqa"])
def test_exemption_in_a_test_has_its_reason(pattern: re.Pattern[str]) -> None:
    report(
        [
            f"{module.path}:{line}: name the rule, and the reason in the same line"
            for module in tidiness.beside_the_product()
            for line in tidiness.comments_matching(module, pattern)
        ]
    )


def test_package_files_only_import_and_export() -> None:
    offences = []
    for module in modules():
        if not module.path.endswith("/__init__.py"):
            continue
        body = module.tree.body
        strays = [node for node in body if not _belongs_in_package_file(node)]
        offences += [
            f"{module.path}:{node.lineno}: only imports and __all__ here" for node in strays
        ]
        imports = any(isinstance(node, ast.Import | ast.ImportFrom) for node in body)
        if imports and not any(isinstance(node, ast.Assign | ast.AnnAssign) for node in body):
            offences.append(f"{module.path}: imports without __all__")
    report(offences)


def test_package_that_exports_names_is_imported_by_its_own_name() -> None:
    """Names that every reader imports from the modules inside need no second place."""
    imported = {
        (name, reader.path)
        for reader in (*modules(), *tidiness.beside_the_product())
        for name in IMPORTED_FROM.findall(reader.text)
    }
    offences = []
    for module in modules():
        if module.path.endswith("/__init__.py") and IMPORTED_FROM.search(module.text):
            folder = module.path.removesuffix("__init__.py")
            users = [path for name, path in imported if name == module.dotted_name]
            if all(path.startswith(folder) for path in users):
                offences.append(f"{module.path}: exports names that nothing imports from it")
    report(offences)


def test_every_module_is_used() -> None:
    used = frozenset[str]().union(
        tidiness.imported_by_generated_code(),
        *(module.imported - {module.dotted_name} for module in modules()),
        *(module.named_in_text for module in modules()),
        {path.removesuffix(".py").replace("/", ".") for path in handler_heads.paths()},
        {each.judge.__module__ for each in all_cases()},
    )
    dead = [m.path for m in modules() if not (m.is_started or m.dotted_name in used)]
    report([f"{p}: nothing imports it" for p in dead if p not in ALLOWED["dead_modules"]])


def test_source_archive_holds_all_that_git_tracks() -> None:
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    included = settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    tracked = {path.partition("/")[0] for path in tidiness.tracked_files()}
    assert {*included, "pyproject.toml"} == {name for name in tracked if name[0] != "."}


def test_sets_are_not_iterated_below_the_hosts() -> None:
    report(
        [
            f"{module.path}:{line}: iterates a set, use sorted(...), a dict or a list"
            for module in modules()
            if module.is_below_hosts
            for line in iterated_sets(module.tree)
        ]
    )


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("for x in {1, 2}:\n    pass", [1]),
        ("for x in sorted({1, 2}):\n    pass", []),
        ("seen = set()\nfor x in seen:\n    pass", [2]),
        ("seen: set[int] = set()\ny = [x for x in seen]", [2]),
        ("seen: set[int] = set()\ny = sorted(x for x in seen)", []),
        ("def f(ids: frozenset[int]) -> list[int]:\n    return list(ids)", [2]),
        ("def f(a: set[int], b: set[int]) -> None:\n    for x in a - b:\n        g(x)", [2]),
        ("for x in {1: 2}:\n    pass", []),
    ],
)
def test_iterated_set_is_found(source: str, lines: list[int]) -> None:
    assert list(iterated_sets(ast.parse(source))) == lines


def test_simulated_chance_comes_from_a_seed() -> None:
    report(
        [
            f"{module.path}:{line}: draws from nobody's seed, use Random(seed)"
            for module in modules()
            if module.package == "sim"
            for line in _unseeded(module.tree)
        ]
    )


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("from random import Random\nchance = Random(1)", []),
        ("from random import Random\nchance = Random()", [2]),
        ("import random\nat = random.randrange(3)", [1]),
        ("from random import choice, Random", [1]),
    ],
)
def test_unseeded_chance_is_found(source: str, lines: list[int]) -> None:
    assert list(_unseeded(ast.parse(source))) == lines


@pytest.mark.parametrize("module", handler_heads.handlers(), ids=lambda m: m.path.split("/")[-1])
def test_handler_head_agrees_with_the_registry(module: Module) -> None:
    head = handler_heads.head_of(module)
    api = APIS[head.api_key]
    assert (head.name, head.versions) == (api.name, api.versions)
    assert module.path.endswith(f"/{api.module}.py")


def test_every_served_api_has_its_handler() -> None:
    existing = {module.path for module in handler_heads.handlers()}
    missing = sorted({*handler_heads.paths()} - existing)
    offences = [f"{path}: in the registry but missing" for path in missing]
    report([each for each in offences if each.split(":")[0] not in ALLOWED["missing_handlers"]])


def test_every_served_api_has_tests_of_its_name() -> None:
    files = {path.name: path for path in (CHECKOUT / "tests").rglob("test_*.py")}
    offences = []
    for module in handler_heads.handlers():
        name = f"test_{module.path.rpartition('/')[2]}"
        api = handler_heads.head_of(module).name
        if name not in files or api not in files[name].read_text(encoding="utf-8"):
            offences.append(f"{module.path}: no {name} is about {api}")
    report(offences)


def _unseeded(tree: ast.Module) -> Iterator[int]:
    """Yield the lines that import more than `Random`, or make one without a seed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            is_seeded = all(name.name != "random" for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "random":
            is_seeded = all(name.name == "Random" for name in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Random":
            is_seeded = bool(node.args)
        else:
            continue
        if not is_seeded:
            yield node.lineno


def _public_methods(node: ast.ClassDef) -> int:
    methods = [m for m in node.body if isinstance(m, ast.FunctionDef | ast.AsyncFunctionDef)]
    plain = [m for m in methods if not any(ast.unparse(d) == "property" for d in m.decorator_list)]
    return sum(not method.name.startswith("_") for method in plain)


def _lacks_docstring(module: Module) -> bool:
    is_empty_package_file = module.path.endswith("/__init__.py") and not module.tree.body
    return not is_empty_package_file and ast.get_docstring(module.tree) is None


def _belongs_in_package_file(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign | ast.AnnAssign):
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
        return ast.unparse(target) == "__all__"
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_docstring or isinstance(node, ast.Import | ast.ImportFrom)
