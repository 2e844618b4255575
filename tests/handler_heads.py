"""Reads the head of an API's handler, of the broker or the controller: the docstring's fixed form.

Fetch, API key 1, versions 4-18.

Behaviour:   what a client's author needs to know
Versions:    what changed in which version
Left out:    what is not done, or "nothing"
"""

import ast
import re
from dataclasses import dataclass

from kraft_wire.apis.api import Owner
from kraft_wire.apis.registry import APIS
from tests.tidiness import Module, modules

FOLDERS = ("kraft_wire/broker/handlers/", "kraft_wire/controller/handlers/")
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


def paths() -> list[str]:
    """The module of every API that a broker or a controller answers, by the registry."""
    folders = {Owner.BROKER: FOLDERS[0], Owner.CONTROLLER: FOLDERS[1]}
    rows = APIS.values()
    return [f"{folders[row.owner]}{row.module}.py" for row in rows if row.owner in folders]


def handlers() -> list[Module]:
    """The module of every served API that exists, in path order."""
    wanted = {*paths()}
    return [module for module in modules() if module.path in wanted]


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
