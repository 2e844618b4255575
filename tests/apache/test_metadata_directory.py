"""A metadata log that is not in the first of `log.dirs`, handed over between both makes.

KIP-631's `metadata.log.dir`. Each make finds the topics and records that the other one left.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.apache import test_replica_moves as moves
from tests.apache.node import ApacheNode
from tests.apache.test_replica_moves import OurNode, create, values, write
from tests.server.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.slow]

METADATA = "__cluster_metadata-0"


def node(
    name: str, folder: Path, settings: Mapping[str, str], *, is_new: bool
) -> OurNode | ApacheNode:
    """A node over two directories of logs."""
    chosen = {**moves.SETTINGS, "log.dirs": ",".join(moves.paths(folder)), **settings}
    if name == "ours":
        return OurNode(folder, overrides=chosen)
    apache = ApacheNode(folder, overrides=chosen)
    if is_new:
        apache.format()
    else:
        apache.configure()
    return apache


@pytest.mark.parametrize("place", ["metadata", "more"])
@pytest.mark.parametrize("makes", [("apache", "ours"), ("ours", "apache")])
def test_makes_take_turns(place: str, makes: tuple[str, str], tmp_path: Path) -> None:
    settings = {"metadata.log.dir": str(tmp_path / place)}
    written = 0
    for turn in range(3):
        process = node(makes[turn % 2], tmp_path, settings, is_new=turn == 0)
        process.start()
        try:
            with WireClient(process.bootstrap) as client:
                if turn == 0:
                    create(client)
                write(client, written, 5)
                written += 5
                assert values(client) == moves.expected(written)
        finally:
            process.stop()
        assert (tmp_path / place / METADATA / "quorum-state").exists()
        assert not (tmp_path / "data" / METADATA).exists()
