"""The functions of one direction of a message: one per distinct layout of each struct."""

from collections.abc import Callable
from typing import NamedTuple

from codegen.layout import NamedMessage, StructLayout, layout_of
from codegen.names import snake_case
from codegen.source import function

__all__ = ["Definition", "Functions", "by_version"]


class Definition(NamedTuple):
    """A function without its name."""

    arguments: list[str]
    result: str
    body: list[str]


class Functions:
    """Functions by what they do to which layout; each is defined once, behind those it calls."""

    def __init__(self, verb: str) -> None:
        self.defined: list[list[str]] = []
        """The lines of each, in definition order."""
        self._verb = verb
        self._names: dict[tuple[str, StructLayout], str] = {}
        self._counts: dict[str, int] = {}

    def name(
        self, form: str, layout: StructLayout, define: Callable[[StructLayout], Definition]
    ) -> str:
        """Return the function of a form (one struct, a list, the tags) and layout."""
        key = (form, layout)
        if key not in self._names:
            definition = define(layout)
            stem = f"_{self._verb}_{snake_case(layout.class_name)}{form}"
            self._counts[stem] = self._counts.get(stem, 0) + 1
            self._names[key] = f"{stem}_{self._counts[stem]}"
            self.defined.append(function(self._names[key], *definition))
        return self._names[key]


def by_version(message: NamedMessage, one: Callable[[StructLayout], str]) -> dict[int, str]:
    """Return the function of every version of a message."""
    root = message.spec.root
    return {version: one(layout_of(message, root, version)) for version in message.spec.versions}
