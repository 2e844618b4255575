"""What the documents claim is what the code does: KIPs, deviations, verbs, file map."""

import ast
import json
import re
import tomllib
from dataclasses import fields
from fnmatch import fnmatch
from pathlib import Path

import pytest

from kraft_wire.apis.api import ListenerType
from kraft_wire.apis.registry import served
from kraft_wire.broker.settings import BrokerSettings, field_key
from kraft_wire.settings.broker import BROKER_KEYS, DYNAMIC_BROKER_KEYS
from kraft_wire.settings.topic import TOPIC_KEYS
from tests import handler_heads, references
from tests.kips import traceability
from tests.kips.traceability import Kip
from tests.tidiness import CHECKOUT, Module

DEVIATIONS = CHECKOUT / "docs" / "DEVIATIONS.md"
KEYS = CHECKOUT / "kraft_wire" / "settings" / "broker.py"
"""Names keys without reading them."""
ARCHITECTURE = CHECKOUT / "docs" / "ARCHITECTURE.md"

TELEMETRY = {71, 72}
"""Advertised only where a plug-in takes what clients tell (KIP-714)."""

DATED = re.compile(r"2\d{3}-\d\d-\d\d, \S")


def test_kips_page_is_what_requirements_and_tests_make() -> None:
    written = traceability.PAGE.read_text(encoding="utf-8")
    assert written == traceability.page(), "run python -m tests.kips --write"


@pytest.mark.parametrize("kip", traceability.kips(), ids=lambda kip: kip.name)
def test_every_requirement_of_a_kip_has_a_test_or_says_since_when_not(kip: Kip) -> None:
    known = [row.id for row in kip.requirements]
    assert len(known) == len(set(known))
    assert [row.id for row in kip.untested if not DATED.match(row.open)] == []
    assert [row.id for row in kip.requirements if row.open and row.id in kip.tests] == []
    assert [each for each in kip.tests if each not in known] == []


@pytest.mark.parametrize("kip", traceability.kips(), ids=lambda kip: kip.name)
def test_module_of_a_requirement_exists(kip: Kip) -> None:
    named = {row.module for row in kip.requirements}
    assert [path for path in sorted(named) if not (CHECKOUT / "kraft_wire" / path).exists()] == []


@pytest.mark.parametrize("module", handler_heads.handlers(), ids=lambda m: m.path.split("/")[-1])
def test_what_a_handler_leaves_out_stands_among_the_deviations(module: Module) -> None:
    head = handler_heads.head_of(module)
    written = _deviations().get(head.api_key)
    left_out = head.sections["Left out"].rstrip(".")
    if left_out.lower().startswith("nothing"):
        assert written is None or written[1], f"{head.name}: an empty section"
        return
    assert written is not None, f"docs/DEVIATIONS.md has no section for {head.api_key} {head.name}"
    assert written[0] == head.name


def test_deviations_are_in_the_order_of_the_api_keys() -> None:
    keys = list(_deviations())
    assert keys == sorted(keys)


@pytest.mark.parametrize(
    ("listener", "place"),
    [
        (ListenerType.BROKER, "a broker's"),
        (ListenerType.CONTROLLER, "the controller's"),
    ],
)
def test_deviations_name_every_api_that_a_listener_lacks(
    listener: ListenerType, place: str
) -> None:
    text = DEVIATIONS.read_text(encoding="utf-8")
    start = text.index(f"**What {place} listener does not serve**")
    named = [
        key
        for numbers in re.findall(r"\(([\dto,\s]+)\)", text[start : text.index("\n- ", start)])
        for key in _keys(numbers)
    ]
    assert sorted(named) == sorted(_advertised(listener.value) - {*served(listener)})


def test_rooms_are_listed_with_what_their_package_files_state() -> None:
    """A folder with modules of its own; one module per API key has no more to state."""
    rows = dict(re.findall(r"^\| `(kraft_wire/[^`]+)/` \| (.+) \|$", _section("### Rooms"), re.M))
    for place, holds in rows.items():
        source = (CHECKOUT / place / "__init__.py").read_text(encoding="utf-8")
        stated = (ast.get_docstring(ast.parse(source)) or holds).splitlines()[0].rstrip(".")
        assert holds in (stated, stated[0].lower() + stated[1:]), place
    packages = {place.split("/")[1] for place in rows}
    rooms = {
        str(each.parent.relative_to(CHECKOUT))
        for package in packages
        for each in (CHECKOUT / "kraft_wire" / package).glob("*/**/__init__.py")
    }
    assert rooms - {"kraft_wire/wire/generated", "kraft_wire/wire/generated/tables"} == set(rows)


def _section(heading: str) -> str:
    """Return the text of ARCHITECTURE.md from a heading to the next one of any level."""
    text = ARCHITECTURE.read_text(encoding="utf-8")
    found = re.search(rf"^{heading}$(.*?)^#", text, re.M | re.S)
    assert found is not None, heading
    return found.group(1)


def test_file_map_names_every_package_and_no_file_that_is_gone() -> None:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    named = re.findall(r"`((?:kraft_wire|codegen|tests|docs|benchmarks)/[\w/.-]+)`", text)
    assert [path for path in named if not (CHECKOUT / path).exists()] == []
    packages = [name for name in _layers() if (CHECKOUT / "kraft_wire" / name).is_dir()]
    assert packages
    assert [name for name in packages if f"`kraft_wire/{name}/`" not in text] == []


def test_non_obvious_entries_are_cited_where_the_code_depends_on_them() -> None:
    text = (CHECKOUT / "docs" / "ARCHITECTURE.md").read_text()
    entries = text.partition("## Non-obvious\n")[2].partition("\n## ")[0]
    numbers = [int(each) for each in re.findall(r"(?m)^(\d+)\. \*\*", entries)]
    assert numbers == list(range(1, len(numbers) + 1))
    sources = [*CHECKOUT.glob("kraft_wire/**/*.py"), *CHECKOUT.glob("tests/**/*.py")]
    cited = {
        int(number)
        for source in sources
        for number in re.findall(r"Non-obvious (\d+): \w", source.read_text())
    }
    assert cited == set(numbers)


@pytest.mark.parametrize("path", references.PAGES, ids=lambda path: path.name)
def test_reference_page_is_what_the_code_makes(path: Path) -> None:
    written = path.read_text(encoding="utf-8")
    assert written == references.PAGES[path](), "run python -m tests.references --write"


def test_index_of_the_documents_names_every_page() -> None:
    docs = CHECKOUT / "docs"
    text = (docs / "README.md").read_text(encoding="utf-8")
    pages = [*docs.glob("*.md"), *docs.glob("walkthroughs/*.md")]
    names = [str(page.relative_to(docs)) for page in pages if page.name != "README.md"]
    assert [name for name in sorted(names) if f"({name})" not in text] == []


def test_contributing_names_every_verb_of_the_makefile() -> None:
    verbs = re.findall(r"^([\w-]+):.*?## ", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)
    text = (CHECKOUT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert verbs
    assert [verb for verb in verbs if f"`make {verb}" not in text] == []


def _keys(numbers: str) -> list[int]:
    """Read `17, 36` and `38 to 41`."""
    found = []
    for part in numbers.split(","):
        ends = [int(end) for end in part.split("to")]
        found += range(ends[0], ends[-1] + 1)
    return found


def _advertised(listener: str) -> set[int]:
    """The keys that release 4.3.1 advertises on a listener, by its own schemas."""
    found = set()
    for path in CHECKOUT.glob("schemas/messages/*Request.json"):
        text = re.sub(r"^\s*//.*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        schema = json.loads(text)
        if listener in schema.get("listeners", ()):
            found.add(schema["apiKey"])
    return found - TELEMETRY


def _layers() -> list[str]:
    """The packages that the layer contract knows; it is exhaustive, so these are all."""
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = [each["layers"] for each in contracts if each["name"].startswith("layers:")]
    return [name for row in layers for name in row.split(" | ")]


def test_every_key_that_no_code_reads_stands_among_the_settings_without_effect() -> None:
    text = DEVIATIONS.read_text(encoding="utf-8")
    without_effect = re.findall(r"`([a-z.*]+)`", text.partition("\n## Per API key\n")[0])
    assert "num.io.threads" in without_effect
    unread = set(BROKER_KEYS) | set(DYNAMIC_BROKER_KEYS)
    unread -= {field_key(each.name) for each in fields(BrokerSettings)}
    unread -= {synonym.name for key in TOPIC_KEYS.values() for synonym in key.synonyms}
    for path in (CHECKOUT / "kraft_wire").rglob("*.py"):
        if not {"generated", "spark"} & set(path.parts) and path != KEYS:
            unread -= set(re.findall(r'"([a-z0-9.]+)"', path.read_text(encoding="utf-8")))
    unnamed = [
        key for key in sorted(unread) if not any(fnmatch(key, each) for each in without_effect)
    ]
    assert unnamed == []


def _deviations() -> dict[int, tuple[str, str]]:
    """Sections `### <key> <name>` of the deviations page: name and text by API key."""
    text = DEVIATIONS.read_text(encoding="utf-8")
    found = re.findall(r"^### (\d+) (\w+)\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    return {int(key): (name, body.strip()) for key, name, body in found}
