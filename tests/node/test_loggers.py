"""Kafka's loggers as components: levels from the list that Kafka's images take."""

from __future__ import annotations

import zipfile

import pytest

from kraft_wire.node.event_log import EventLog
from kraft_wire.node.events.catalogue import EVENTS
from kraft_wire.node.events.loggers import LOGGERS, logger_levels
from tests.apache.jars import jar_directory


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("kafka.authorizer.logger=debug", {"authorizer": "DEBUG"}),
        (
            "kafka.controller=WARN,kafka.authorizer.logger=OFF",
            {"controller": "WARN", "authorizer": "OFF"},
        ),
        ("state.change.logger=ERROR", {"metadata": "ERROR"}),
        ("org.apache.kafka.image.loader.MetadataLoader=WARN", {"metadata": "WARN"}),
        ("org.apache.kafka.raft=DEBUG , network=ERROR", {"quorum": "DEBUG", "network": "ERROR"}),
        (
            "org.apache.kafka=WARN,org.apache.kafka.raft=INFO,kafka=ERROR,kafka.log=ERROR,",
            {
                "server": "ERROR",
                "network": "WARN",
                "authorizer": "ERROR",
                "links": "WARN",
                "quorum": "INFO",
                "controller": "WARN",
                "metadata": "WARN",
                "broker": "ERROR",
                "coordinator": "WARN",
                "storage": "WARN",
            },
        ),
    ],
)
def test_longest_logger_above_a_component_sets_its_level(text: str, levels: dict[str, str]) -> None:
    found = logger_levels(text)
    assert found.levels == levels
    assert found.wrong == found.unused == []


def test_entry_without_level_is_wrong_and_foreign_logger_is_unused() -> None:
    found = logger_levels("kafka.controller,kafka=LOUD,=INFO,org.apache.zookeeper=INFO,kafk=INFO")
    assert found.levels == {}
    assert found.wrong == ["kafka.controller", "kafka=LOUD", "=INFO"]
    assert found.unused == ["org.apache.zookeeper", "kafk"]


def test_level_of_a_component_holds_for_its_events_only() -> None:
    lines: list[str] = []
    log = EventLog(lines.append)
    log.set_level("DEBUG", "authorizer")
    log.set_level("ERROR", "metadata")
    assert log.may_write("authorization_granted")
    assert not log.may_write("connection_opened")
    for name in (
        "authorization_granted",
        "topic_created",
        "isr_shrunk",
        "ready",
        "connection_opened",
    ):
        log.event(name)
    log.event_at("ERROR", "topic_created")
    assert [line.split()[2] for line in lines] == [
        "authorization_granted",
        "ready",
        "topic_created",
    ]


def test_each_component_of_a_node_has_loggers() -> None:
    assert {each.component for each in EVENTS.values()} - {"proxy"} == LOGGERS.keys()


@pytest.mark.java
def test_loggers_that_are_classes_are_in_the_release() -> None:
    names = {
        entry.removesuffix(".class").replace("/", ".")
        for jar in jar_directory().glob("kafka*.jar")
        for entry in zipfile.ZipFile(jar).namelist()
    }
    classes = {
        each
        for loggers in LOGGERS.values()
        for each in loggers
        if each.rsplit(".", 1)[1][0].isupper()
    }
    assert len(classes) > 15
    assert classes - names == set()
