"""Notes on fields become docstrings; a note on nothing stops the generation."""

import json
from inspect import getdoc
from pathlib import Path

import pytest

from codegen.__main__ import SCHEMAS
from codegen.notes import check_notes, read_notes
from codegen.spec import SchemaError
from codegen.write import read_schemas, render_tree
from kraft_wire.wire.generated.fetch import FetchPartition
from kraft_wire.wire.generated.vote import VoteRequest, VoteResponse


def written(path: Path, text: str) -> Path:
    file = path / "notes.json"
    file.write_text(text)
    return file


def test_notes_stand_in_the_docstrings_of_their_classes() -> None:
    vote, partition = getdoc(VoteRequest), getdoc(FetchPartition)
    assert vote is not None
    assert "\nvoter_id: Whom the request is meant for;" in vote, "3.13 takes the indent away"
    assert partition is not None
    assert "last_fetched_epoch: Epoch of the record before FetchOffset" in partition
    assert VoteResponse.__doc__ == "VoteResponse, API key 52, versions 0-2, flexible 0+."


def test_every_note_is_on_a_field_and_leaves_no_blanks_at_the_ends_of_lines() -> None:
    notes = read_notes(SCHEMAS / "notes.json")
    assert len(notes) > 100
    check_notes(notes, [spec for spec, _ in read_schemas(SCHEMAS)], "notes.json")
    for path, text in render_tree(SCHEMAS).items():
        if not path.startswith("tables/"):
            lines = text.splitlines()
            assert not [line for line in lines if line != line.rstrip()], path


@pytest.mark.parametrize(
    "key", ["VoteRequest.Nothing", "VoteRequest.TopicData", "Vote.ClusterId", "VoteRequest"]
)
def test_note_on_a_field_that_does_not_exist_names_file_and_field(key: str) -> None:
    messages = [spec for spec, _ in read_schemas(SCHEMAS)]
    with pytest.raises(SchemaError, match="does not exist") as failure:
        check_notes({key: "A note."}, messages, "schemas/notes.json")
    assert (failure.value.file, failure.value.field) == ("schemas/notes.json", key)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('["a"]', "is not an object of notes"),
        ('{"A.B": "One.", "A.B": "Two."}', "two notes"),
        ('{"A.B": 7}', "one line of text"),
        ('{"A.B": "No stop"}', "one line of text"),
        ('{"A.B": "Two\\nlines."}', "one line of text"),
        (json.dumps({"A.B": "x" * 300 + "."}), "longer than"),
    ],
)
def test_what_is_no_note_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        read_notes(written(tmp_path, text))


def test_schemas_without_notes_are_generated_from(tmp_path: Path) -> None:
    assert read_notes(tmp_path / "notes.json") == {}
