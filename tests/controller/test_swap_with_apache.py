"""The metadata log changes hands: what Apache Kafka recorded we serve, and the reverse."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

import pytest

from kraft_wire.cli.topics.admin import (
    AdminRefused,
    alter_configs,
    create_topic,
    delete_topics,
    describe_configs,
)
from kraft_wire.cli.topics.partitions import described
from kraft_wire.client import BrokerConnection
from tests.apache.node import ApacheNode
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

FOLLOWED_WITHIN_S = 20
"""A broker follows the metadata log: what was changed through it shows a moment later."""

State = dict[str, tuple[str | None, int, Mapping[str, str | None]]]


def state(bootstrap: str) -> State:
    """Return id, partition count and own settings of every topic, once all have leaders."""
    found: State = {}
    with BrokerConnection(bootstrap) as connection:
        for topic in described(connection, []):
            if any((each.leader, each.isr) != (1, [1]) for each in topic.partitions):
                return {}  # elections are not through yet
            own = {
                each.name: each.value
                for each in describe_configs(connection, topic.name)
                if each.source == "topic"
            }
            found[topic.name] = (topic.topic_id, len(topic.partitions), own)
    return found


def settled(bootstrap: str, names: set[str], own: dict[str, str]) -> State:
    """Return the state once it has these topics, and `theirs` these settings."""
    deadline = monotonic() + FOLLOWED_WITHIN_S
    while True:
        found: State = {}
        with suppress(AdminRefused):  # a topic went between the two requests about it
            found = state(bootstrap)
        if set(found) == names and found["theirs"][2] == own:
            return found
        assert monotonic() < deadline, found
        sleep(0.1)


def epochs(bootstrap: str, name: str) -> list[int]:
    """Return the leader epochs of a topic's partitions."""
    with BrokerConnection(bootstrap) as connection:
        return [each.leader_epoch for each in described(connection, [name])[0].partitions]


def test_topics_and_settings_survive_each_change_of_the_program(tmp_path: Path) -> None:
    apache = ApacheNode(tmp_path / "apache")
    apache.format()
    ours = ServerProcess(tmp_path / "ours")
    ours.directory.mkdir()
    ours.data = apache.data
    try:
        apache.start()
        with BrokerConnection(apache.bootstrap) as connection:
            create_topic(connection, "theirs", 3, 1, {"retention.ms": "12345"})
            create_topic(connection, "gone", 1, 1, {})
            alter_configs(connection, "theirs", {"cleanup.policy": "compact"}, ())
            delete_topics(connection, ["gone"])
        own = {"cleanup.policy": "compact", "retention.ms": "12345"}
        before = settled(apache.bootstrap, {"theirs"}, own)
        their_epochs = epochs(apache.bootstrap, "theirs")
        apache.stop()

        ours.start()
        assert state(ours.bootstrap) == before
        our_epochs = epochs(ours.bootstrap, "theirs")
        assert all(now > then for now, then in zip(our_epochs, their_epochs, strict=True))
        with BrokerConnection(ours.bootstrap) as connection:
            create_topic(connection, "ours", 2, 1, {"segment.ms": "999999"})
            alter_configs(connection, "theirs", {}, ["retention.ms"])
        del own["retention.ms"]
        before = settled(ours.bootstrap, {"theirs", "ours"}, own)
        ours.stop()

        apache.start()
        assert settled(apache.bootstrap, set(before), own) == before
        with BrokerConnection(apache.bootstrap) as connection:
            delete_topics(connection, ["ours"])
            create_topic(connection, "last", 1, 1, {})
        before = settled(apache.bootstrap, {"theirs", "last"}, own)
        apache.kill()

        ours.start()
        assert state(ours.bootstrap) == before
        ours.kill()

        apache.start()
        assert settled(apache.bootstrap, set(before), own) == before
    finally:
        ours.kill()
        apache.kill()
