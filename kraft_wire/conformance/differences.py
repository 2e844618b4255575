"""Differences between two brokers: the exchanges of the same rows, compared field by field."""

from collections.abc import Iterator
from dataclasses import dataclass

from kraft_wire.conformance.normal_form import Fields, NormalForm
from kraft_wire.conformance.recording import RecordedRow, Recording
from kraft_wire.conformance.verdict import Exchange, Verdict
from kraft_wire.wire.generated.registry import response_class

__all__ = ["Difference", "differences"]

_ABSENT = "(absent)"


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that differs, and all rows in which it differs in the same way."""

    path: str
    """The message's name and the field's path; in parentheses where no field differs."""
    left: str
    right: str
    rows: tuple[str, ...]


def differences(left: Recording, right: Recording) -> list[Difference]:
    """Return the differences of the rows that are in both recordings, in their order."""
    others = {each.name: each for each in right.rows}
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for row in left.rows:
        other = others.get(row.name)
        for key in () if other is None else _of_row(row, other):
            found.setdefault(key, {})[row.name] = None
    return [Difference(*key, tuple(rows)) for key, rows in found.items()]


def _of_row(left: RecordedRow, right: RecordedRow) -> Iterator[tuple[str, str, str]]:
    if left.verdict is not right.verdict:
        yield "(verdict)", left.verdict, right.verdict
    if Verdict.NOT_SUPPORTED in (left.verdict, right.verdict):
        return
    if len(left.exchanges) != len(right.exchanges):
        yield "(exchanges)", str(len(left.exchanges)), str(len(right.exchanges))
    forms = tuple(NormalForm(each.case, each.version) for each in (left, right))
    for mine, theirs in zip(left.exchanges, right.exchanges, strict=False):
        name, other_name = _name(mine), _name(theirs)
        if (name, mine.version) != (other_name, theirs.version):
            yield "(request)", f"{name} {mine.version}", f"{other_name} {theirs.version}"
            return
        one, other = forms[0].of(mine), forms[1].of(theirs)
        for path in _differing(one, other):
            yield f"{name} {path}", _shown(one, path), _shown(other, path)


def _name(exchange: Exchange) -> str:
    """Return the API's name as Kafka spells it."""
    return response_class(exchange.api_key).NAME.removesuffix("Response")


def _differing(one: Fields, other: Fields) -> Iterator[str]:
    """Yield the paths that differ; of an element that only one side has, its own path alone."""
    lone = ""
    for path in {**one, **other}:
        if path.startswith(lone + ".") and lone:
            continue
        if (path in one) != (path in other) and path.endswith("]"):
            lone = path
        if one.get(path, _ABSENT) != other.get(path, _ABSENT):
            yield path


def _shown(fields: Fields, path: str) -> str:
    value = fields.get(path, _ABSENT)
    return value.hex() if isinstance(value, bytes) else str(value)
