"""The strict schema reader: what is impossible stops it, with file, field and reason."""

import json
from typing import Any

import pytest

from codegen.canonical import canonical_text
from codegen.spec import SchemaError, parse_message
from codegen.versions import NONE, OPEN, VersionRange, parse_versions
from tests.codegen.feature_modules import FEATURES


def message(**changes: Any) -> dict[str, Any]:
    """Return a small valid schema with some keys replaced; None removes one."""
    base: dict[str, Any] = {
        "type": "request",
        "name": "XRequest",
        "apiKey": 1,
        "listeners": ["broker"],
        "validVersions": "0-3",
        "flexibleVersions": "2+",
        "fields": [],
        **changes,
    }
    return {key: value for key, value in base.items() if value is not None}


def field(**changes: Any) -> dict[str, Any]:
    """Return a small valid field with some keys replaced; None removes one."""
    base = {"name": "A", "type": "int32", "versions": "0+", **changes}
    return {key: value for key, value in base.items() if value is not None}


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    (message(color="red"), "(message)", "unknown key 'color'"),
    (message(type="gossip"), "XRequest", "unknown message type 'gossip'"),
    (message(name=None), "(message)", "name is missing"),
    (message(validVersions="3-1"), "XRequest", "impossible version range"),
    (message(validVersions="99999+"), "XRequest", "impossible version range"),
    (message(flexibleVersions="2-3"), "XRequest", "impossible version range: it ends"),
    (
        message(fields=[field(versions="2-3", taggedVersions="2-3", tag=0)]),
        "XRequest.A",
        "taggedVersions 2-3 is an impossible version range: it ends",
    ),
    (message(validVersions="1-2+"), "XRequest", "both an end and a plus"),
    (message(validVersions="one"), "XRequest", "not a version range"),
    (message(validVersions=4), "XRequest", "validVersions is missing or not a string"),
    (message(apiKey="x"), "XRequest", "'x' is not a key or tag"),
    (message(latestVersionUnstable="maybe"), "XRequest", "not true or false"),
    (message(fields={}), "XRequest", "is not a list"),
    (message(fields=[1]), "XRequest", "1 is not an object"),
    (message(fields=[field(colour=1)]), "XRequest.A", "unknown key 'colour'"),
    (message(fields=[field(name="a-b")]), "XRequest.a-b", "not a field name"),
    (message(fields=[field(), field()]), "XRequest.A", "defined twice"),
    (message(fields=[field(type="int31")]), "XRequest.A", "type 'int31' does not exist"),
    (message(fields=[field(type="Gone")]), "XRequest.A", "type 'Gone' does not exist"),
    (message(fields=[field(fields=[])]), "XRequest.A", "a int32 has no fields of its own"),
    (message(fields=[field(versions=None)]), "XRequest.A", "versions is missing"),
    (message(fields=[field(tag=0)]), "XRequest.A", "come together or not at all"),
    (message(fields=[field(taggedVersions="2+")]), "XRequest.A", "come together"),
    (
        message(fields=[field(taggedVersions="1+", tag=0)]),
        "XRequest.A",
        "tagged in 1+, but flexible in 2+",
    ),
    (
        message(fields=[field(versions="3+", taggedVersions="2+", tag=0)]),
        "XRequest.A",
        "tagged in 2+, but exists in 3+",
    ),
    (
        message(
            fields=[
                field(taggedVersions="2+", tag=0),
                field(name="B", taggedVersions="2+", tag=0),
            ]
        ),
        "XRequest.B",
        "duplicate tag 0",
    ),
    (
        message(fields=[field(taggedVersions="2+", tag=1)]),
        "XRequest",
        "tags are not contiguous: 0 is missing",
    ),
    (message(fields=[field(default="null")]), "XRequest.A", "never null"),
    (message(fields=[field(default="x")]), "XRequest.A", "'x' is not a number"),
    (message(fields=[field(default=1 << 31)]), "XRequest.A", "does not fit int32"),
    (message(fields=[field(type="uint16", default=-1)]), "XRequest.A", "does not fit uint16"),
    (message(fields=[field(type="bool", default="no")]), "XRequest.A", "is not a bool"),
    (message(fields=[field(type="[]int32", default="7")]), "XRequest.A", "is not null"),
    (message(fields=[field(nullableVersions="0+")]), "XRequest.A", "a int32 cannot be null"),
    (message(fields=[field(entityType="planet")]), "XRequest.A", "unknown entityType 'planet'"),
    (
        message(commonStructs=[{"name": "C", "versions": "0+", "fields": [], "tag": 1}]),
        "XRequest",
        "unknown key 'tag'",
    ),
    (
        message(
            commonStructs=[
                {"name": "C", "versions": "0+", "fields": []},
                {"name": "C", "versions": "0+", "fields": []},
            ]
        ),
        "C",
        "defined twice",
    ),
    (
        message(
            commonStructs=[{"name": "C", "versions": "0+", "fields": [field(type="[]C")]}],
        ),
        "C",
        "contains itself",
    ),
    (
        message(
            fields=[
                field(type="S", fields=[field()]),
                field(name="B", type="S", fields=[field()]),
            ]
        ),
        "XRequest.B",
        "struct S is defined twice",
    ),
]


@pytest.mark.parametrize(("document", "where", "reason"), REFUSED)
def test_impossible_schema_stops_with_file_field_and_reason(
    document: dict[str, Any], where: str, reason: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_message(json.dumps(document), "X.json")
    assert caught.value.file == "X.json"
    assert caught.value.field == where
    assert reason in caught.value.reason


@pytest.mark.parametrize("text", ["", "{", "[]", "7"])
def test_what_is_no_json_object_stops_with_the_file(text: str) -> None:
    with pytest.raises(SchemaError, match=r"^X\.json: \(file\): not"):
        parse_message(text, "X.json")


def test_key_that_stands_twice_is_refused_with_its_field() -> None:
    text = (
        '{"type": "data", "name": "X", "fields": [{"name": "A", "type": "int8", "type": "bool"}]}'
    )
    with pytest.raises(SchemaError, match=r"x\.json: A: the key 'type' is listed twice"):
        parse_message(text, "x.json")


def test_comments_prose_and_quoted_values_are_read() -> None:
    text = """// licence
    { "type": "request", "name": "XRequest", "apiKey": 1, "validVersions": "0",
      // why
      "flexibleVersions": "0+", "fields": [
        { "name": "Max", "type": "int32", "versions": "0+", "default": "0x7fffffff", "about": "x" },
        { "name": "Epoch", "type": "int64", "taggedVersions": "0+", "tag": "0", "default": "-1" },
        { "name": "Ratio", "type": "float64", "versions": "0+", "default": "1.5" },
        { "name": "On", "type": "bool", "versions": "0+", "default": "true", "ignorable": "true" }
    ] }"""
    most, epoch, ratio, on = parse_message(text, "X.json").root.fields
    assert (most.default, epoch.default, ratio.default, on.default) == (2147483647, -1, 1.5, True)
    assert epoch.versions == VersionRange(0, OPEN)
    assert epoch.tag == 0
    assert on.ignorable


@pytest.mark.parametrize("path", sorted(FEATURES.glob("*.json")), ids=lambda path: path.stem)
def test_canonical_form_reads_back_equal_and_is_stable(path: Any) -> None:
    spec = parse_message(path.read_text(), path.name)
    text = canonical_text(spec)
    assert parse_message(text, path.name) == spec
    assert canonical_text(parse_message(text, path.name)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("none", NONE),
        ("3", VersionRange(3, 3)),
        ("0-4", VersionRange(0, 4)),
        ("12+", VersionRange(12, OPEN)),
    ],
)
def test_version_range_reads_and_spells_itself(text: str, expected: VersionRange) -> None:
    assert parse_versions(text) == expected
    assert str(expected) == text


def test_version_ranges_intersect_and_cover() -> None:
    assert VersionRange(0, 4).intersect(VersionRange(3, OPEN)) == VersionRange(3, 4)
    assert VersionRange(0, 1).intersect(VersionRange(3, OPEN)) == NONE
    assert VersionRange(0, 4).covers(NONE)
    assert not VersionRange(0, 4).covers(VersionRange(3, 5))
    assert list(VersionRange(2, 4)) == [2, 3, 4]
    assert 2 in VersionRange(2, 4)
    assert 5 not in VersionRange(2, 4)
