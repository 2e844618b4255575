"""Groups of all kinds whose coordinators are killed; members that change their protocol.

`make coordinators` and `make migration` do more of the same, and on Apache's brokers as the
control.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.cluster import Cluster
from tests.group_kinds import migration
from tests.group_kinds.coordinators import SETTINGS, Campaign, Size
from tests.group_kinds.migration import Migration
from tests.mixed.controller import OURS
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.java, pytest.mark.client, pytest.mark.slow, pytest.mark.timeout(600)]
ROUNDS = 2
KILLS = 1


def test_offsets_and_deliveries_stay_when_coordinators_are_killed(tmp_path: Path) -> None:
    with Cluster(tmp_path, OURS, overrides=SETTINGS) as cluster:
        size = Size(groups=2, replaced=1)
        outcome = Campaign(cluster, tmp_path, size=size).run(KILLS)
    assert outcome.wrong == []
    assert (outcome.kills, outcome.records) == (KILLS, 2 * size.records)


def test_no_record_is_skipped_while_members_change_their_protocol(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, overrides=migration.SETTINGS) as server:
        outcome = Migration(server.bootstrap, tmp_path, members=3).run(ROUNDS)
    assert outcome.wrong == []
    assert outcome.rounds == ROUNDS
    assert outcome.records > 0
