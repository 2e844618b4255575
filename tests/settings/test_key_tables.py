"""Every configuration key equals what Apache Kafka's own definitions say."""

import subprocess
from pathlib import Path

import pytest

from kraft_wire.settings.broker import BROKER_KEYS, DYNAMIC_BROKER_KEYS, OWN_DEFAULTS, OWN_KEYS
from kraft_wire.settings.definition import ConfigKey, ListOf, Required, UpdateMode
from kraft_wire.settings.group import CLIENT_METRICS_KEYS, GROUP_KEYS
from kraft_wire.settings.key_tables import load_keys
from kraft_wire.settings.topic import TOPIC_KEYS
from kraft_wire.settings.values import default_text
from tests.apache import jars
from tests.settings.refresh_keys import FILES, Row, read_facts


@pytest.fixture(scope="module")
def facts() -> dict[str, list[Row]]:
    """What the release's own classes print about their configuration."""
    source = Path(__file__).with_name("ConfigFacts.java")
    command = ["java", "-cp", jars.classpath(), str(source)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return read_facts(done.stdout)


def describe(key: ConfigKey) -> Row:
    """Write a key back in the form of the facts."""
    row: Row = {
        "name": key.name,
        "kind": key.kind.name.lower(),
        "default": default_text(key) if key.default is None or default_text(key) else "<required>",
        "importance": key.importance,
    }
    if default_text(key) == "":
        row["default"] = ""
    if key.valid is not None and str(key.valid):
        row["valid"] = str(key.valid)
    if isinstance(key.valid, ListOf):
        row["list"] = [key.valid.may_be_empty, key.valid.may_be_null]
    if key.scope is not UpdateMode.READ_ONLY:
        row["scope"] = key.scope.value
    if key.synonyms:
        row["synonyms"] = [[synonym.name, synonym.factor] for synonym in key.synonyms]
    if key.internal:
        row["internal"] = True
    return row


@pytest.mark.java
@pytest.mark.parametrize("area", sorted(FILES))
def test_table_equals_the_definitions_of_the_release(
    area: str, facts: dict[str, list[Row]]
) -> None:
    ours = [describe(key) for key in load_keys(FILES[area]).values()]
    assert ours == facts[area]


def test_every_key_has_a_note_of_ours() -> None:
    tables = (BROKER_KEYS, DYNAMIC_BROKER_KEYS, TOPIC_KEYS, GROUP_KEYS, CLIENT_METRICS_KEYS)
    for table in tables:
        assert [name for name, key in table.items() if not key.documentation] == []


def test_every_key_accepts_its_own_default() -> None:
    for table in (BROKER_KEYS, DYNAMIC_BROKER_KEYS, TOPIC_KEYS, GROUP_KEYS, CLIENT_METRICS_KEYS):
        for key in table.values():
            if key.valid is not None and not isinstance(key.default, Required):
                assert key.valid.problem(key.name, key.default) is None, key.name


def test_topic_has_33_public_keys() -> None:
    assert len([key for key in TOPIC_KEYS.values() if not key.internal]) == 33


def test_own_keys_and_own_defaults_do_not_hide_a_key_of_the_release() -> None:
    of_the_release = load_keys("broker_keys.json")
    assert not set(OWN_KEYS) & set(of_the_release)
    assert set(OWN_DEFAULTS) <= set(of_the_release)
