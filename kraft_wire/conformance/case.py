"""A conformance case: data about one behavior of one API, and the few lines that show it.

A case is a function `(broker, version)` under the decorator `case`. Its docstring begins with the
expectation in one sentence; the lines below it are the steps. It raises `Mismatch`, through the
functions of `expect`, if the broker does something else.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from inspect import getdoc
from pkgutil import iter_modules
from types import ModuleType
from typing import Final

from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.messages import MESSAGES

__all__ = ["Case", "Listener", "all_cases", "case", "cases_of"]

_CASES: Final = "kraft_wire.conformance.cases"
_ATTRIBUTE: Final = "conformance_case"

Judge = Callable[[Subject, int], None]


class Listener(StrEnum):
    """The listener that a case talks to."""

    BROKER = "broker"
    CONTROLLER = "controller"


@dataclass(frozen=True, slots=True)
class Case:
    """One behavior that a broker must show, in each of its versions."""

    name: str
    """`api.function`: the file's name and the function's."""
    api: str
    """The API's name as Kafka spells it: `ListOffsets`."""
    versions: tuple[int, int]
    """The first and the last version that the case applies to, both inclusive."""
    source: str
    """The KIP and section, or the class of Apache Kafka, that asks for the behavior."""
    expectation: str
    steps: str
    listener: Listener
    judge: Judge

    @property
    def api_key(self) -> int:
        """Return the key of the API."""
        return MESSAGES[f"{self.api}Request"].api_key


def case(
    api: str,
    source: str,
    *,
    since: int | None = None,
    until: int | None = None,
    listener: Listener = Listener.BROKER,
) -> Callable[[Judge], Judge]:
    """Declare a function to be a case of `api`, in versions `since` to `until`, both inclusive.

    By default a case applies to every stable version of the API.
    """
    entry = MESSAGES[f"{api}Request"]
    first = entry.min_version if since is None else since
    last = entry.max_version if until is None else until
    assert entry.min_version <= first <= last <= entry.max_version, (api, first, last)

    def declare(judge: Judge) -> Judge:
        text = getdoc(judge) or ""
        expectation, _, steps = text.partition("\n\n")
        assert expectation, f"{judge.__name__} states no expectation"
        module = judge.__module__.rpartition(".")[2]
        found = Case(
            name=f"{module}.{judge.__name__}",
            api=api,
            versions=(first, last),
            source=source,
            expectation=" ".join(expectation.split()),
            steps=steps.strip(),
            listener=listener,
            judge=judge,
        )
        setattr(judge, _ATTRIBUTE, found)
        return judge

    return declare


def cases_of(module: ModuleType) -> Iterator[Case]:
    """Yield the cases that a module declares, in the order of its lines."""
    for value in vars(module).values():
        found = getattr(value, _ATTRIBUTE, None)
        if isinstance(found, Case) and value.__module__ == module.__name__:
            yield found


def all_cases() -> list[Case]:
    """Return the cases of all modules of `cases/`, in the order of their names."""
    package = import_module(_CASES)
    names = sorted(each.name for each in iter_modules(package.__path__))
    return [found for name in names for found in cases_of(import_module(f"{_CASES}.{name}"))]
