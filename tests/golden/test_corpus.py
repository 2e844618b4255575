"""The committed corpus through the wire command: no Java needed, every message and version.

The bytes come from Apache Kafka's own classes (each file's first line says which). What is compared
is the contract of ``kraft-wire wire decode`` and ``encode``, as a judge from outside would do it.
"""

from __future__ import annotations

import json
from collections import defaultdict

import pytest

from tests.golden.comparison import Comparison, compare
from tests.golden.vectors import CORPUS, first_difference, read_vectors, same_json

KINDS = {
    "request": (89, 302),
    "response": (89, 302),
    "request_header": (1, 2),
    "response_header": (1, 2),
    "metadata_record": (26, 37),
    "metadata_frame": (26, 37),
    "coordinator_record": (50, 59),
    "coordinator_key": (25, 25),
    "coordinator_value": (25, 34),
    "raft_record": (6, 8),
    "control_record": (2, 2),
    "consumer_protocol": (2, 8),
    "principal": (1, 1),
    "version_prefixed": (3, 9),
    "remote_log_record": (5, 5),
    "records": (1, 3),
}


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compare(CORPUS)


def test_corpus_has_every_message_and_version_of_the_release() -> None:
    versions: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for file in CORPUS.rglob("*.jsonl"):
        head = json.loads(file.read_text(encoding="utf-8").partition("\n")[0])
        assert "Apache Kafka 4.3.1" in head["origin"]
        for vector in read_vectors(file):
            versions[vector.kind].add((vector.name, vector.version))
    assert {
        kind: (len({name for name, _ in pairs}), len(pairs)) for kind, pairs in versions.items()
    } == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_corpus_vectors_decode_and_encode_as_apache_does(comparison: Comparison, kind: str) -> None:
    result = comparison.kinds[kind]
    problems = [problem for problem in comparison.problems if problem.startswith(f"{kind} ")]
    for tally in (result.decode, result.json, result.encode, result.round_trip):
        assert tally.right == tally.asked, problems
    assert result.decode.asked > 0


@pytest.mark.parametrize("kind", KINDS)
def test_corpus_malformed_inputs_get_apaches_verdict(comparison: Comparison, kind: str) -> None:
    result = comparison.kinds[kind]
    problems = [problem for problem in comparison.problems if problem.startswith(f"{kind} ")]
    for tally in (result.accepted, result.refused, result.located, result.doubtful):
        assert tally.right == tally.asked, problems


def test_same_json_compares_reals_with_the_sign_of_zero_and_integers_exactly() -> None:
    assert same_json({"a": [1.0, 2**63]}, {"a": [1, 2**63]})
    assert not same_json(0.0, -0.0)
    assert not same_json(2**63, 2**63 - 1)
    assert not same_json(True, 1)
    assert not same_json(None, "")
    assert first_difference({"a": [1]}, {"a": [2]}) == ".a[0]: ours '1', Apache's '2'"
