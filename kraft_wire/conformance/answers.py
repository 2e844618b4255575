"""A release's answers to every row, field by field, compared after the case's own checks.

A case checks the fields that it is about. The rest of its responses is compared with the answers of
the profile's release: with the fields in which several recorded nodes agreed. These differ in their
settings and in the number of their nodes, so that no remaining field depends on a setting.
Responses are compared in their normal form: ids by first appearance, texts by presence.
"""

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import Final, Self

from kraft_wire.conformance.normal_form import RULES, NormalForm
from kraft_wire.conformance.target import Target
from kraft_wire.conformance.verdict import Difference, Exchange
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.registry import response_class

__all__ = ["AnswerMismatch", "Answers", "Row", "answered"]

_FOLDER: Final = files("kraft_wire.conformance").joinpath("profiles")
_ENDING: Final = ".answers.jsonl.gz"
_OF_REQUEST: Final = "request."
_ABSENT: Final = "(absent)"
_OFFERED: Final = ("api_keys[", "supported_features[", "finalized_features[")
"""What a broker offers: fewer and other versions are not supported, or newer, and not wrong."""

_ERROR_CODE: Final = "error_code"
_INDEX: Final = re.compile(r"\[\d+\]")
_PRODUCER: Final = "producer "
_OWN_NODE: Final = "this node"
_OF_TOPIC: Final = 1
"""The source of a setting: the topic itself."""

Fields = Mapping[str, object]
Row = list[dict[str, object]]
"""The fields of each response of a row, in their order."""


class AnswerMismatch(Difference):
    """A field that a case does not check differs from the release's answer."""

    def __init__(self, expected: str, seen: str, path: str, exchange: int) -> None:
        super().__init__(expected, seen, path)
        self.exchange = exchange
        """The number of the exchange among those that are not preparation."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The fields of one release, by row."""

    about: str
    rows: Mapping[str, Row]

    @classmethod
    def of(cls, about: str, nodes: Sequence[Mapping[str, Row]]) -> Self:
        """Keep the fields in which all recorded nodes agree, of rows that all of them have."""
        first, *others = nodes
        return cls(
            about,
            {
                name: _agreed(row, [each[name] for each in others])
                for name, row in first.items()
                if all(name in each and len(each[name]) == len(row) for each in others)
            },
        )

    @classmethod
    def read(cls, profile: str) -> Self | None:
        """Return the answers of a profile's release, None if there are none."""
        file = _FOLDER.joinpath(profile + _ENDING)
        if not file.is_file():
            return None
        head, *lines = gzip.decompress(file.read_bytes()).decode().splitlines()
        return cls(json.loads(head)["about"], dict(json.loads(each) for each in lines))

    def write(self, path: Path) -> None:
        """Write the file; the same answers give the same bytes."""
        lines = [json.dumps({"about": self.about}), *map(json.dumps, self.rows.items())]
        path.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))

    def judge(self, case: str, version: int, target: Target, exchanges: Sequence[Exchange]) -> None:
        """Compare a row with the release's.

        Raises AnswerMismatch at the first error code that differs, or else at the first field.
        """
        wanted = self.rows.get(f"{case}/{version}", [])
        found = answered(case, version, target, exchanges)
        if len(found) != len(wanted):
            return  # The case asked more or less often, until something had come.
        asked = [each for each in exchanges if not each.is_preparation]
        differing = [
            AnswerMismatch(f"{value} as of {self.about}", str(seen.get(path, _ABSENT)), path, index)
            for index, (fields, seen, exchange) in enumerate(zip(wanted, found, asked, strict=True))
            for path, value in _judged_fields(case, fields, exchange)
            if not _agrees(value, seen.get(path, _ABSENT), target.node_id)
        ]
        if differing:
            raise min(differing, key=lambda each: not each.path.endswith(_ERROR_CODE))


def answered(
    case: str, version: int, target: Target, exchanges: Iterable[Exchange]
) -> list[dict[str, object]]:
    """Return the fields of each response of a row that can be compared."""
    own: dict[str, object] = {}
    if target.advertised is not None:
        host, port = target.advertised
        own = {"node": target.node_id, "host": host, "port": port}
    form = NormalForm(case, version, own)
    return [
        {
            path: f"0x{value.hex()}" if isinstance(value, bytes) else value
            for path, value in _comparable(form.of(each), each)
        }
        for each in exchanges
        if not each.is_preparation
    ]


def _comparable(fields: Mapping[str, object], exchange: Exchange) -> Iterator[tuple[str, object]]:
    """Yield the fields of a response that neither a setting nor the rest of the cluster decides."""
    try:
        name = response_class(exchange.api_key).NAME.removesuffix("Response")
    except KeyError:
        return
    for path, value in fields.items():
        if not path.startswith(_OF_REQUEST) and not _is_set_elsewhere(fields, name, path):
            yield path, value


def _judged_fields(case: str, fields: Fields, exchange: Exchange) -> Iterator[tuple[str, object]]:
    """Yield the release's fields that any broker should have."""
    if _failed_in_itself(fields):
        return
    for path, value in _comparable(fields, exchange):
        is_free = path.startswith(_OFFERED) or _is_unordered(case, path)
        if not is_free and not _is_of_cluster(fields, path):
            yield path, value


def _is_unordered(case: str, path: str) -> bool:
    """Return whether a field is in a list that Apache Kafka takes from a hash table."""
    rules: Mapping[str, Sequence[str]] = RULES["unordered_by_case"]
    return any(fnmatchcase(path, one) for one in rules.get(case, ()))


def _is_of_cluster(fields: Mapping[str, object], path: str) -> bool:
    """Return whether a field is in a list whose length differs between clusters."""
    for place in _INDEX.finditer(path):
        place_of_list = path[: place.start()]
        name = place_of_list.rpartition(".")[2]
        if name not in RULES["keyed"] and f"{place_of_list}.length" not in fields:
            return True
    return False


def _agrees(wanted: object, seen: object, node_id: int) -> bool:
    """Return whether values are equal, or ids whose numbers alone differ: 0 can also mean none."""
    if seen == wanted or (wanted, seen, node_id) == (0, _OWN_NODE, 0):
        return True
    is_producer = isinstance(seen, str) and seen.startswith(_PRODUCER)
    return str(wanted).startswith(_PRODUCER) and (is_producer or seen == 0)


def _failed_in_itself(fields: Mapping[str, object]) -> bool:
    """Return whether the release answered with an internal error, which is not a reference."""
    codes = (value for path, value in fields.items() if path.endswith(_ERROR_CODE))
    return any(code == ErrorCode.UNKNOWN_SERVER_ERROR for code in codes)


def _is_set_elsewhere(fields: Mapping[str, object], name: str, path: str) -> bool:
    """Return whether a field depends on a setting of the broker; the case sets those of topics."""
    element = path[: path.rfind("]") + 1]
    if fields.get(f"{element}.config_source") == _OF_TOPIC:
        return False
    return any(fnmatchcase(f"{name} {path}", one) for one in RULES["by_setting"])


def _agreed(row: Row, others: Sequence[Row]) -> Row:
    return [
        {
            path: value
            for path, value in fields.items()
            if all(path in each[index] and each[index][path] == value for each in others)
        }
        for index, fields in enumerate(row)
    ]
