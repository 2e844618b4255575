"""Share groups on three brokers of ours that are killed; `make shares` does more of the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.cluster import Cluster
from tests.mixed.controller import OURS
from tests.share_groups.campaign import SETTINGS, Campaign, Deliveries

RECORDS = 1_500


@pytest.mark.java
@pytest.mark.client
@pytest.mark.timeout(900)
def test_accepted_records_do_not_come_again_when_brokers_are_killed(tmp_path: Path) -> None:
    with Cluster(tmp_path, OURS, overrides=SETTINGS) as cluster:
        seen = Campaign(cluster, tmp_path).run(2, RECORDS)
    assert seen.wrong == []
    assert seen.done == set(range(3 * RECORDS))


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        (("d 1 1", "a 1", "d 2 1", "u 2", "d 2 2", "a 2"), []),
        (("d 1 1", "a 1", "d 1 2"), ["record 1 was accepted and is delivered again"]),
        (("d 1 1", "a 1", "a 1"), ["record 1 is accepted twice"]),
        (("d 1 2", "d 1 1"), ["record 1: delivery 1 after 2"]),
        (("d 1 2", "d 1 2", "u 1"), []),
    ],
)
def test_what_is_wrong_with_deliveries_is_found(lines: tuple[str, ...], wrong: list[str]) -> None:
    seen = Deliveries()
    seen.take(lines)
    assert seen.wrong == wrong
    assert seen.done == {int(line.split()[1]) for line in lines if line[0] in "au"}
