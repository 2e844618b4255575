"""Prose that people read is plain: phrases that puzzled readers do not come back.

CONTRIBUTING.md, "Language", says how to write. Looked at are the pages of documentation, and in
`kraft_wire` docstrings, help texts, errors and log lines.
"""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.tidiness import CHECKOUT, modules

ODD = re.compile(
    r"\b(?:hurts?|unsaid|manieth|spoilt|anew|for ever|once more|over and over|again and again"
    r"|in vain|lived? through|lives through|lives up to|obey(?:s|ed)?|believe[sd]?|forgets?|forgot"
    r"|f[ae]lls? silent|says of any|stands? twice|propositions?|whoever leads"
    r"|(?:stands|lies) (?!in for)(?:in|at|behind|below|above|among|between|beside)"
    r"|(?<!there )(?:is|are) no (?!longer|more)[a-z]+|made-up|that is none|knows? of|of who"
    r"|comes? back|(?:goes|go) on)\b",
    re.IGNORECASE,
)
"""Refused everywhere."""

ODD_TO_USERS = re.compile(
    r"\b(?:nobody|somebody|whoever|of whom|tells?|told|made anew|says no|will out|who (?:is|are)"
    r"|is there already|are the most|has not this)\b",
    re.IGNORECASE,
)
"""Refused in pages and in texts that the program prints."""

FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
QUOTED = {"docs/KIPS.md", "CHANGELOG.md"}
"""Sentences of KIPs, and lines about texts that are gone."""
PAIRS = "| instead of | write |"
"""Examples in CONTRIBUTING.md, bad ones first."""


def pages() -> list[str]:
    """Every page of documentation."""
    found = [*CHECKOUT.glob("docs/**/*.md"), CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md"]
    names = [path.relative_to(CHECKOUT).as_posix() for path in found]
    return [name for name in sorted([*names, "mutants/README.md"]) if name not in QUOTED]


def prose_of(name: str) -> str:
    """A page without blocks of code and examples of bad style."""
    text = FENCED.sub("", (CHECKOUT / name).read_text(encoding="utf-8"))
    before, pairs, after = text.partition(PAIRS)
    return before + after.partition("\n\n")[2] if pairs else text


def odd_words(text: str, *patterns: re.Pattern[str]) -> list[str]:
    """Each refused phrase, with some words around it."""
    flat = " ".join(text.split())
    hits = [hit for pattern in patterns for hit in pattern.finditer(flat)]
    return [flat[max(0, hit.start() - 30) : hit.end() + 30] for hit in hits]


@pytest.mark.parametrize("name", pages())
def test_page_has_no_odd_phrase(name: str) -> None:
    assert odd_words(prose_of(name), ODD, ODD_TO_USERS) == []


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """String statements: docstrings of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def test_docstring_has_no_odd_phrase() -> None:
    found = [
        f"{module.path}:{node.lineno}: {words}"
        for module in modules()
        if module.path.startswith("kraft_wire/")
        for node in _docstrings(module.tree)
        for words in odd_words(str(node.value), ODD)
    ]
    assert found == []


def test_printed_text_has_no_odd_phrase() -> None:
    """Strings of two words or more; one word may be a name of Kafka's or a key."""
    found = []
    for module in modules():
        docstrings = {id(node) for node in _docstrings(module.tree)}
        for node in ast.walk(module.tree):
            if module.path.startswith("kraft_wire/sim/") or id(node) in docstrings:
                continue
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts = odd_words(node.value, ODD, ODD_TO_USERS) if " " in node.value else []
                found += [f"{module.path}:{node.lineno}: {words}" for words in texts]
    assert found == []


def test_odd_phrases_are_found() -> None:
    text = "Hurt them from\nanother shell: it stands in the log, nobody was told of it"
    assert [len(odd_words(text, each)) for each in (ODD, ODD_TO_USERS)] == [2, 2]
