"""Commands against a broker whose answers are spoilt end in time, and without a Python trace."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from random import Random
from typing import cast

import pytest

from kraft_wire.cli.groups.describing import _assigned
from kraft_wire.cli.groups.reset import partitions_to_reset
from kraft_wire.client.cluster import ClusterClient, ClusterRefused, the_only
from kraft_wire.client.range_assignment import assignment_bytes
from kraft_wire.model import TopicPartition
from tests.cli.spoilt_answers import findings, spoilt_node

SEED = 11
COMMANDS = 150


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_command_ends_in_one_line_whatever_it_is_answered(tmp_path: Path) -> None:
    """`python -m tests.cli.spoilt_answers` searches on."""
    with spoilt_node(tmp_path, Random(SEED)) as (spoiler, address):
        found = [each for each in islice(findings(spoiler, address), COMMANDS) if each is not None]
    assert found == []


@pytest.mark.parametrize("found", [[], ["a", "b"]])
def test_an_answer_about_another_number_of_things_is_refused(found: list[str]) -> None:
    with pytest.raises(ClusterRefused, match=f"answers about {len(found)} groups"):
        the_only(found, "groups")
    assert the_only(["a"], "groups") == "a"


def test_an_assignment_that_cannot_be_read_has_no_partitions() -> None:
    """It is a member's choice, and must not hide the group from everybody."""
    key = TopicPartition("t", 3)
    assert _assigned("consumer", assignment_bytes([key])) == [key]
    assert _assigned("consumer", b"\0\0\x7f\xff\xff\xff") == ()
    assert _assigned("connect", b"\0\0\x7f\xff\xff\xff") == ()


def test_a_topic_without_partitions_has_nothing_to_reset() -> None:
    """As some broker may say while it creates the topic."""

    class Empty:
        def partitions_of(self, topics: list[str]) -> dict[str, int]:
            return dict.fromkeys(topics, 0)

    cluster = cast("ClusterClient", Empty())
    assert partitions_to_reset(cluster, ["t"], {}) == []
    with pytest.raises(ClusterRefused, match="topic t has no partition 0: it has 0"):
        partitions_to_reset(cluster, ["t:0"], {})
