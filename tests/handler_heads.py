"""Reads the head of an API's handler, of the broker or the controller: the docstring's fixed form.

Fetch, API key 1, versions 4-18.

Behaviour:   what a client's author needs to know
Versions:    what changed in which version
Left out:    what is not done, or "nothing"
"""

import ast
import re
from dataclasses import dataclass

from tests.tidiness import Module, modules

FOLDERS = ("kraft_wire/broker/handlers/", "kraft_wire/controller/")
SECTIONS = ("Behaviour", "Versions", "Left out")
_FIRST_LINE = re.compile(r"(\w+), API key (\d+), versions? (\d+)(?:-(\d+))?\.$")
_SECTION = re.compile(r"^(Behaviour|Versions|Left out):[ \t]*(.*?)(?=^\w[\w ]*:|\Z)", re.M | re.S)


@dataclass(frozen=True)
class Head:
    """What a handler says about itself."""

    module: Module
    name: str
    api_key: int
    versions: tuple[int, int]
    sections: dict[str, str]


def handlers() -> list[Module]:
    """The module of every served API, in path order."""
    found = [module for module in modules() if module.path.startswith(FOLDERS)]
    return [module for module in found if "API_KEY" in constants(module)]


def head_of(module: Module) -> Head:
    """Parse the docstring; ValueError says which part of the form is missing."""
    docstring = ast.get_docstring(module.tree) or ""
    first = _FIRST_LINE.match(docstring.partition("\n")[0])
    if first is None:
        raise ValueError(f"{module.path}:1: the first line is not 'Name, API key K, versions A-B.'")
    sections = {name: " ".join(text.split()) for name, text in _SECTION.findall(docstring)}
    missing = [name for name in SECTIONS if not sections.get(name)]
    if missing:
        raise ValueError(f"{module.path}:1: the head lacks {', '.join(missing)}")
    lowest = int(first[3])
    highest = int(first[4] or first[3])
    return Head(module, first[1], int(first[2]), (lowest, highest), sections)


def constants(module: Module) -> dict[str, object]:
    """The values of API_KEY and VERSIONS as the module writes them."""
    found: dict[str, object] = {}
    for node in module.tree.body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name) and target.id in {"API_KEY", "VERSIONS"}:
                found[target.id] = ast.literal_eval(value)
    return found
