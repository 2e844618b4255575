"""A metadata log that is not in the first of `log.dirs`, handed over between both makes.

KIP-631's `metadata.log.dir`. Each make finds the topics and records that the other one left.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apache.test_replica_moves import create, expected, node, values, write
from tests.server.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.slow]

METADATA = "__cluster_metadata-0"


@pytest.mark.parametrize("place", ["metadata", "more"])
@pytest.mark.parametrize("makes", [("apache", "ours"), ("ours", "apache")])
def test_makes_take_turns(place: str, makes: tuple[str, str], tmp_path: Path) -> None:
    settings = {"metadata.log.dir": str(tmp_path / place)}
    written = 0
    for turn in range(3):
        process = node(makes[turn % 2], tmp_path, is_new=turn == 0, more=settings)
        process.start()
        try:
            with WireClient(process.bootstrap) as client:
                if turn == 0:
                    create(client)
                write(client, written, 5)
                written += 5
                assert values(client) == expected(written)
        finally:
            process.stop()
        assert (tmp_path / place / METADATA / "quorum-state").exists()
        assert not (tmp_path / "data" / METADATA).exists()
