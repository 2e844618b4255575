"""Quotas, credentials and access-control entries change hands, through snapshots, both ways."""

from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from kraft_wire.client import BrokerConnection, BrokerConnectionError
from tests.apache.node import ApacheNode
from tests.controller.admin_steps import Step
from tests.controller.cluster_steps import (
    PASSWORD,
    SALT,
    SHA_256,
    SHA_512,
    acl,
    acl_filter,
    create_acls,
    delete_acls,
    describe_acls,
    described,
    quotas,
    scram,
    users,
)
from tests.controller.record_admin_answers import ask
from tests.controller.record_cluster_answers import AUTHORIZER
from tests.controller.test_cluster_answers import ordered
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

PROPERTIES = {**AUTHORIZER, "metadata.log.max.record.bytes.between.snapshots": "1"}
WITHIN_S = 20
DESCRIBING = [described(), users(every=True), describe_acls(acl_filter())]


def told(bootstrap: str, steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Return the answers to some requests.

    A node of Apache closes connections until its authorizer has read all entries.
    """
    deadline = monotonic() + WITHIN_S
    while True:
        try:
            with BrokerConnection(bootstrap) as connection:
                return [ordered(ask(connection, step, {})) for step in steps]
        except BrokerConnectionError:
            assert monotonic() < deadline, steps
            sleep(0.2)


def changed(bootstrap: str, *steps: Step) -> list[dict[str, Any]]:
    """Ask for changes, and return what is described once all of them show."""
    before = told(bootstrap, DESCRIBING)
    for answer in told(bootstrap, steps):
        assert "'errorCode': 0" in str(answer), answer
    deadline = monotonic() + WITHIN_S
    while True:
        after = told(bootstrap, DESCRIBING)
        sleep(0.3)  # a change of three kinds may show one after the other
        if all(then != now for then, now in zip(before, after, strict=True)):
            return told(bootstrap, DESCRIBING)
        assert monotonic() < deadline, after


def snapshots(data: Path) -> set[str]:
    """Return the names of the metadata log's snapshots."""
    return {path.name for path in data.glob("__cluster_metadata-0/*.checkpoint")}


def wait_for_snapshot(data: Path, before: set[str]) -> None:
    """Wait until the running node has written one more."""
    deadline = monotonic() + WITHIN_S
    while not snapshots(data) - before:
        assert monotonic() < deadline, before
        sleep(0.1)


def test_principals_survive_each_change_of_the_program(tmp_path: Path) -> None:
    apache = ApacheNode(tmp_path / "apache", overrides=PROPERTIES)
    apache.format()
    ours = ServerProcess(tmp_path / "ours", overrides=PROPERTIES)
    ours.directory.mkdir()
    ours.data = apache.data
    try:
        apache.start()
        theirs = changed(
            apache.bootstrap,
            quotas(({"user": "a", "client-id": None}, {"producer_byte_rate": 5.0})),
            scram([("al", SHA_256, 4096, SALT, PASSWORD)]),
            create_acls(acl("t"), acl("te", "User:b", pattern=4)),
        )
        wait_for_snapshot(apache.data, set())
        apache.stop()

        ours.start()
        assert told(ours.bootstrap, DESCRIBING) == theirs
        before = snapshots(apache.data)
        changes = changed(
            ours.bootstrap,
            quotas(({"ip": "127.0.0.1"}, {"connection_creation_rate": 7.0})),
            scram([("bo", SHA_512, 8192, SALT, PASSWORD)]),
            delete_acls(acl_filter(name="t")),
            create_acls(acl("g", resource=3, permission=2)),
        )
        wait_for_snapshot(apache.data, before)
        ours.stop()

        apache.start()
        assert told(apache.bootstrap, DESCRIBING) == changes
    finally:
        ours.kill()
        apache.kill()
