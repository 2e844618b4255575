"""Replicas whose directories are gone, by what the metadata log has about them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kraft_wire.audit.collector.missing_replicas import MissingReplicas
from kraft_wire.audit.metadata_facts import Assignment, MetadataFacts
from kraft_wire.model import Uuid

IDS = [Uuid(bytes([each] * 16)) for each in (1, 2, 3, 4)]


def test_a_replica_that_is_missing_is_an_error_where_it_must_be_complete() -> None:
    """KIP-966: an eligible replica has every committed record, as one in sync has.

    The directory of replica 4 is with another node now, which holds none of its partitions.
    """
    assignment = Assignment([1, 2, 3, 4], [1], 1, IDS, eligible=[2])
    facts = MetadataFacts(is_known=True, assignments={("t", 0): assignment})
    nodes = dict(zip(IDS, ["1", "2", "3", "9"], strict=True))
    found = MissingReplicas(facts, [], nodes).findings({("t", 0): 5}, {})
    assert [(each.node, each.severity) for each in found] == [
        ("1", "error"),
        ("2", "error"),
        ("3", "warn"),
    ]


def test_only_partitions_that_lack_a_replica_are_listed() -> None:
    assignment = Assignment([1, 2], [1, 2], 1, IDS[:2], eligible=[])
    facts = MetadataFacts(is_known=True, assignments={("t", 0): assignment, ("t", 1): assignment})
    whole: Any = SimpleNamespace(
        topic="t", partition=0, replicas=[SimpleNamespace(node=each) for each in "12"]
    )
    part: Any = SimpleNamespace(topic="t", partition=1, replicas=[SimpleNamespace(node="2")])
    missing = MissingReplicas(facts, [whole, part], dict(zip(IDS, "12", strict=False)))
    assert [key in missing for key in facts.assignments] == [False, True]
    found = missing.findings({("t", 0): 5, ("t", 1): 5}, {})
    assert [(each.partition, each.node) for each in found] == [(1, "1")]
