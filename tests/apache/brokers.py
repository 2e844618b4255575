"""The two brokers that every tool test runs against: Apache's own first, then ours.

What fails against Apache is a mistake of the test, so each test is a pair, and only its second
half is about us.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from tests.apache.node import ApacheNode
from tests.clients.running import Broker
from tests.server_process import ServerProcess

NAMES = ("apache", "ours")
OUR_SETTINGS = {"num.partitions": "4", "log.segment.bytes": "1048576"}
APACHE_SETTINGS = {"log.segment.bytes": "1048576"}


def broker_process(name: str, directory: Path) -> AbstractContextManager[Broker]:
    """A broker of the named kind over its own directory."""
    if name == "apache":
        return ApacheNode(directory, overrides=APACHE_SETTINGS)
    return ServerProcess(directory, overrides=OUR_SETTINGS)
