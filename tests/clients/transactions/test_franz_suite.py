"""franz-go's own test of consume-transform-produce at a small size; `make franz-suite` has all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.transactions.franz_suite import run_suite
from tests.clients.transactions.running import NODE_SETTINGS
from tests.server_process import ServerProcess

RECORDS = 3_000
WAYS = 6
"""Of balancing a group, each a subtest."""
WAYS_OF_KIP_848 = 3
"""Which franz-go would skip if the broker did not offer these groups."""


@pytest.mark.go
@pytest.mark.client
def test_records_move_through_four_topics_once(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, overrides={**NODE_SETTINGS, "num.partitions": "4"}) as server:
        told = run_suite(server.bootstrap, RECORDS, 1, tmp_path / "suite.log", "TestTxnEtl")
    assert [line for line in told if not line.startswith("--- PASS")] == []
    assert len(told) == 1 + WAYS
    assert len([line for line in told if "/848" in line]) == WAYS_OF_KIP_848
