"""The verbs: generating is repeatable, --check notices, import reads jars, diff compares."""

import zipfile
from pathlib import Path

import pytest

from codegen import __main__ as verbs
from codegen import schema_import
from codegen.diff import diff_table, read_release
from codegen.names import json_name, snake_case
from codegen.schema_import import import_release
from codegen.source import function
from codegen.spec import SchemaError
from codegen.write import differences, render_tree, write_tree
from tests.codegen.feature_modules import FEATURES

ERRORS: list[dict[str, object]] = [
    {"name": "NONE", "code": 0, "retriable": False, "message": "NONE"}
]


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A jar of a release 1.0 with two of the feature schemas in it."""
    monkeypatch.setattr(schema_import, "read_errors", lambda jars: ERRORS)
    path = tmp_path / "kafka-clients-1.0.jar"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("StringsRequest", "ArraysRequest"):
            source = FEATURES / f"{name.removesuffix('Request').lower()}.json"
            archive.writestr(f"common/message/{name}.json", source.read_text())
        archive.writestr("kafka/kafka-version.properties", "version=1.0")
    return path


def test_import_writes_canonical_facts_and_names_the_jars(jar: Path, tmp_path: Path) -> None:
    schemas = tmp_path / "schemas"
    (schemas / "messages").mkdir(parents=True)
    (schemas / "messages" / "GoneRequest.json").write_text("{}")
    assert import_release([jar], schemas) == 2
    assert sorted(path.name for path in schemas.rglob("*")) == [
        "ArraysRequest.json",
        "StringsRequest.json",
        "VERSION",
        "errors.json",
        "messages",
    ]
    release, line = (schemas / "VERSION").read_text().splitlines()
    assert release == "1.0"
    assert line.endswith("  kafka-clients-1.0.jar")
    assert len(line.split()[0]) == 64


def test_import_refuses_jars_of_two_releases_and_jars_without_schemas(
    jar: Path, tmp_path: Path
) -> None:
    other = tmp_path / "kafka-clients-2.0.jar"
    other.write_bytes(jar.read_bytes())
    with pytest.raises(SchemaError, match="several releases"):
        import_release([jar, other], tmp_path / "schemas")
    empty = tmp_path / "empty-1.0.jar"
    with zipfile.ZipFile(empty, "w"):
        pass
    with pytest.raises(SchemaError, match="no schema"):
        import_release([empty], tmp_path / "schemas")


def test_import_that_fails_leaves_the_schemas_as_they_were(
    jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_java(jars: list[Path]) -> list[dict[str, object]]:
        raise SchemaError("errors.json", "(java)", "java is not on the path")

    old = tmp_path / "schemas" / "messages" / "OldRequest.json"
    old.parent.mkdir(parents=True)
    old.write_text("{}")
    monkeypatch.setattr(schema_import, "read_errors", no_java)
    with pytest.raises(SchemaError, match="java is not on the path"):
        import_release([jar], tmp_path / "schemas")
    assert [path.name for path in (tmp_path / "schemas").rglob("*.json")] == ["OldRequest.json"]


@pytest.mark.parametrize("verb", ["import {}", "diff {} schemas", "diff schemas {}"])
@pytest.mark.parametrize("name", ["absent.jar", "text.jar", "empty"])
def test_what_is_no_release_ends_with_code_2_and_one_line(
    verb: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.jar").write_text("no archive")
    (tmp_path / "empty").mkdir()
    assert verbs.main(verb.format(tmp_path / name).split()) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert name in error


def test_diff_of_the_committed_schemas_with_themselves_finds_them_equal() -> None:
    release = read_release(verbs.SCHEMAS)
    assert diff_table(release, release)[2:] == ["", f"{len(release)} messages are equal in both."]


def test_generated_tree_is_repeatable_and_every_difference_is_named(
    jar: Path, tmp_path: Path
) -> None:
    schemas, target = tmp_path / "schemas", tmp_path / "generated"
    import_release([jar], schemas)
    tree = render_tree(schemas)
    assert tree == render_tree(schemas)
    write_tree(tree, target)
    assert differences(tree, target) == []
    (target / "strings.py").write_text("# changed by hand\n")
    (target / "arrays.py").unlink()
    (target / "left_over.py").write_text("")
    assert differences(tree, target) == ["arrays.py", "left_over.py", "strings.py"]
    write_tree(tree, target)
    assert differences(tree, target) == []


def test_committed_tree_is_what_the_committed_schemas_give(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert verbs.main(["--check"]) == 0, capsys.readouterr().out


def test_check_fails_and_names_the_file_when_the_tree_is_stale(
    jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verbs, "SCHEMAS", tmp_path / "schemas")
    monkeypatch.setattr(verbs, "TARGET", tmp_path / "generated")
    assert verbs.main(["import", str(jar)]) == 0
    assert verbs.main(["--check"]) == 1
    assert "strings.py: differs" in capsys.readouterr().out
    assert not (tmp_path / "generated").exists()
    assert verbs.main([]) == 0
    assert verbs.main(["--check"]) == 0


def test_refused_schema_ends_with_code_2_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "messages"
    path.mkdir()
    (path / "XRequest.json").write_text('{"type": "request", "name": "XRequest"}')
    (tmp_path / "VERSION").write_text("1.0\n")
    monkeypatch.setattr(verbs, "SCHEMAS", tmp_path)
    assert verbs.main([]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert "XRequest.json: XRequest: " in error
    assert "validVersions is missing" in error


def test_diff_names_fields_versions_and_broken_layouts(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    strings = (FEATURES / "strings.json").read_text()
    tagged = (FEATURES / "tagged_fields.json").read_text()
    for path, name, text in [
        (old, "StringsRequest", strings),
        (new, "StringsRequest", strings.replace('"int64"', '"int32"').replace('"0-1"', '"0-2"')),
        (old, "TaggedFieldsRequest", tagged),
        (new, "TaggedFieldsRequest", tagged.replace('"default": "-1"', '"default": "-2"')),
        (old, "BlobsRequest", (FEATURES / "blobs.json").read_text()),
        (new, "ArraysRequest", (FEATURES / "arrays.json").read_text()),
        (old, "AbsentFieldsRequest", (FEATURES / "absent_fields.json").read_text()),
        (new, "AbsentFieldsRequest", (FEATURES / "absent_fields.json").read_text()),
    ]:
        path.mkdir(exist_ok=True)
        (path / f"{name}.json").write_text(text)
    lines = diff_table(read_release(old), read_release(new))
    assert lines[2:] == [
        "| ArraysRequest | 0-1 | new request, 7 fields |",
        "| BlobsRequest | 0-1 | gone |",
        "| StringsRequest | 2 | versions 0-1 became 0-2 |",
        "| StringsRequest | 0+ | field Offset: type int64 became int32 |",
        "| StringsRequest | 0, 1 | **the bytes of an existing version changed** |",
        "| TaggedFieldsRequest | 1+ | field Epoch: default -1 became -2 |",
        "| TaggedFieldsRequest | 1+ | field Leader.LeaderId: default -1 became -2 |",
        "",
        "1 messages are equal in both.",
    ]


@pytest.mark.parametrize(
    ("name", "snake", "json"),
    [
        ("TopicId", "topic_id", "topicId"),
        ("KRaftVersionFeature", "kraft_version_feature", "kRaftVersionFeature"),
        ("V3AndBelowTopics", "v3_and_below_topics", "v3AndBelowTopics"),
        ("topicId", "topic_id", "topicId"),
        ("From", "from_", "from"),
    ],
)
def test_names_follow_the_json_name(name: str, snake: str, json: str) -> None:
    assert snake_case(name) == snake
    assert json_name(name) == json


def test_long_lines_are_broken_where_python_allows() -> None:
    names = ", ".join(f"item.attribute_{n}" for n in range(8))
    body = [
        f"{names} = unpack(data, pos)",
        f"out(pack({names}))",
        "if " + " and ".join(f"item.attribute_{n} is None" for n in range(8)) + ":",
        "    pass",
    ]
    lines = function("_read_" + "x" * 60, ["data: Buffer", "pos: int"], "tuple[int, int]", body)
    assert max(map(len, lines)) <= 100
    compile("\n".join(lines), "broken", "exec")
