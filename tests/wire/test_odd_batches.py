"""Odd batches: accepted and refused as Apache's MemoryRecords does, with the same JSON."""

from __future__ import annotations

import pytest

from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.memory_records import scan_batches
from kraft_wire.wire.records.record_batch import RecordBatch
from kraft_wire.wire.records_json import records_to_json
from kraft_wire.wire.strict import records_findings
from tests.golden.vectors import CORPUS, Vector, first_difference, read_vectors, same_json
from tests.wire.odd_batches import VECTORS, odd_batches, question

ODD = list(read_vectors(VECTORS))
APACHE = list(read_vectors(CORPUS / "records" / "MemoryRecords.jsonl"))


def verdict_problem(vector: Vector) -> str | None:
    try:
        ours = records_to_json(bytes.fromhex(vector.hex))
    except CorruptRecordBatch as error:
        return None if vector.verdict == "refuse" else f"refused: {error}"
    if vector.verdict == "refuse":
        return "accepted"
    return None if same_json(ours, vector.json) else first_difference(ours, vector.json)


def test_odd_batches_get_the_verdict_that_apache_gave() -> None:
    problems = {vector.hex[:200]: verdict_problem(vector) for vector in ODD}
    assert {data: problem for data, problem in problems.items() if problem} == {}
    assert {vector.verdict for vector in ODD} == {"accept", "refuse"}


def test_batches_that_apache_wrote_are_read_as_apache_reads_them() -> None:
    problems = [verdict_problem(vector) for vector in APACHE]
    assert [problem for problem in problems if problem] == []


def test_strict_mode_finds_nothing_in_what_apache_wrote_and_never_refuses_more() -> None:
    for vector in APACHE:
        if not vector.malformed:
            assert list(records_findings(bytes.fromhex(vector.hex))) == []
    for vector in ODD:
        if vector.verdict == "accept":
            list(records_findings(bytes.fromhex(vector.hex)))


def test_checking_records_refuses_exactly_what_reading_them_refuses() -> None:
    for vector in ODD + APACHE:
        try:
            batches, _ = scan_batches(bytes.fromhex(vector.hex))
        except CorruptRecordBatch:
            continue
        for batch in batches:
            if isinstance(batch, RecordBatch):
                assert outcome(batch.check_records) == outcome(batch.records)


def outcome(read: object) -> str:
    assert callable(read)
    try:
        read()
    except CorruptRecordBatch as error:
        return error.reason
    return "accepted"


@pytest.mark.java
def test_verdicts_in_the_file_are_those_that_apache_gives_now() -> None:
    from tests.apache.oracle import ask_apache

    known = {vector.hex: vector.verdict for vector in ODD}
    cases = [data for data in odd_batches() if data.hex() in known]
    assert len(cases) > 1000
    answers = ask_apache(map(question, cases))
    given = {
        data.hex(): "accept" if "json" in answer else "refuse"
        for data, answer in zip(cases, answers, strict=True)
    }
    assert given == known
