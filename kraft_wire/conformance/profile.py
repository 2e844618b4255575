"""Profiles: which versions of which API a release serves, as data in `profiles/`.

A row exists for each version that the profile's release serves on the case's listener. A broker's
versions beyond its profile are not judged; missing ones are "not supported".
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from kraft_wire.conformance.case import Case, Listener

__all__ = ["DEFAULT_PROFILE", "Profile", "UnknownProfile", "profile_names", "read_profile"]

DEFAULT_PROFILE: Final = "apache-4.3"

_FOLDER: Final = files("kraft_wire.conformance").joinpath("profiles")
_ENDING: Final = ".json"


class UnknownProfile(Exception):
    """There is no profile of that name; the text is one line."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The versions that one release serves."""

    name: str
    about: str
    versions: Mapping[Listener, Mapping[str, tuple[int, int]]]
    """By listener and the API's name: the first and the last version, both inclusive."""
    excluded: Mapping[str, str]
    """Cases, or rows of them, that the release cannot pass, with the reason."""

    def versions_of(self, case: Case) -> Iterable[int]:
        """Return the versions in which `case` judges this release."""
        if case.name in self.excluded:
            return []
        first, last = self.versions[case.listener].get(case.api, (0, -1))
        offered = range(max(first, case.versions[0]), min(last, case.versions[1]) + 1)
        return [each for each in offered if f"{case.name}/{each}" not in self.excluded]


def profile_names() -> list[str]:
    """Return the names of all profiles."""
    names = (each.name for each in _FOLDER.iterdir())
    return sorted(name.removesuffix(_ENDING) for name in names if name.endswith(_ENDING))


def read_profile(name: str) -> Profile:
    """Read a profile; raises UnknownProfile."""
    if name not in profile_names():
        raise UnknownProfile(f"unknown profile {name!r}; known: {', '.join(profile_names())}")
    data = json.loads(_FOLDER.joinpath(name + _ENDING).read_text(encoding="utf-8"))
    versions = {
        listener: {api: _range(text) for api, text in data[listener].items()}
        for listener in Listener
    }
    return Profile(name, data["about"], versions, data["excluded"])


def _range(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    return int(first), int(last or first)
