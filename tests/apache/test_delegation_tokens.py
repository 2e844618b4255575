"""Delegation tokens beside Apache Kafka 4.3.1: the same story, and the tools of both on both."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apache.secured_node import ACCOUNTS, SecuredApache, SecuredNode, sasl_settings
from tests.apache.token_story import NEAR_MS, TOKEN_SETTINGS, story
from tests.apache.tools import run_tool
from tests.process import write_properties
from tests.waiting import until

pytestmark = [pytest.mark.java, pytest.mark.slow]
Nodes = tuple[SecuredApache, SecuredNode]
CHANGED, REMOVED = "DELEGATION_TOKEN_RECORD", "REMOVE_DELEGATION_TOKEN_RECORD"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    directory = tmp_path_factory.mktemp("tokens")
    settings = sasl_settings("SECURE") | TOKEN_SETTINGS
    ours = SecuredNode(directory / "ours", "SASL_PLAINTEXT", settings)
    ours.format()
    with SecuredApache(directory / "apache", "SASL_PLAINTEXT", settings) as apache, ours:
        yield apache, ours


def test_both_answer_every_step_alike(nodes: Nodes) -> None:
    """57 steps: SEC-TOKEN-02, SEC-TOKEN-03, SEC-TOKEN-04, SEC-TOKEN-05, SEC-TOKEN-06, SEC-TOKEN-07,
    SEC-TOKEN-08, SEC-TOKEN-09, SEC-TOKEN-10; the same records in both logs: SEC-TOKEN-12.
    """
    told = [list(story(node.secure, node.bootstrap)) for node in nodes]
    assert told[1] == told[0]
    written = [recorded(Path(node.properties()["log.dirs"])) for node in nodes]
    assert written[1] == written[0]
    assert {kind for kind, *_ in written[0]} == {CHANGED, REMOVED}


def recorded(directory: Path) -> list[tuple[object, ...]]:
    """Return what the metadata log has of the story's tokens, with numbers for ids.

    `bob` asks for tokens in another test.
    """
    log = directory / "__cluster_metadata-0" / f"{0:020}.log"
    done = run_tool("kafka-dump-log", ["--cluster-metadata-decoder", "--files", str(log)])
    assert done.exit_code == 0, done.text
    numbers: dict[str, int] = {}
    found: list[tuple[object, ...]] = []
    for text in re.findall(r"payload: (\{.*\})$", done.stdout, re.MULTILINE):
        record = json.loads(text)
        kind, data = record["type"], record["data"]
        if kind == CHANGED and data["requester"] != "User:bob":
            number = numbers.setdefault(data["tokenId"], len(numbers))
            issued_ms = data["issueTimestamp"]
            life_ms = data["maxTimestamp"] - issued_ms
            minutes = (data["expirationTimestamp"] - issued_ms) // NEAR_MS
            names = data["owner"], data["requester"], data["renewers"]
            found.append((kind, record["version"], number, *names, life_ms, minutes))
        elif kind == REMOVED and data["tokenId"] in numbers:
            found.append((kind, record["version"], numbers[data["tokenId"]]))
    return found


def settings_file(file: Path, user: str, password: str, extra: str = "") -> str:
    """Write a Java client's login by SCRAM and return the file's name."""
    entry = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    write_properties(
        file,
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{entry} username="{user}" password="{password}"{extra};',
        },
    )
    return str(file)


@pytest.mark.parametrize("which", [0, 1], ids=["apache", "ours"])
def test_apaches_tool_and_clients_use_tokens(nodes: Nodes, tmp_path: Path, which: int) -> None:
    """SEC-TOKEN-08, SEC-TOKEN-10: create, describe, renew, log in by the token, expire."""
    address = nodes[which].secure
    bob = settings_file(tmp_path / "bob", "bob", ACCOUNTS["bob"])

    def did(*words: str) -> str:
        options = ["--bootstrap-server", address, "--command-config", bob]
        done = run_tool("kafka-delegation-tokens", [*words, *options])
        assert done.exit_code == 0, done.text
        return done.stdout

    describing = ["--describe", "--owner-principal", "User:bob"]
    made = did("--create", "--max-life-time-period", "-1", "--owner-principal", "User:bob")
    token_id, hmac = re.findall(r"^([\w-]{22})\s+(\S{88})\s", made, re.MULTILINE)[-1]
    until(lambda: token_id in did(*describing), lambda: "the token")
    did("--renew", "--renew-time-period", "-1", "--hmac", hmac)
    holder = settings_file(tmp_path / "token", token_id, hmac, ' tokenauth="true"')
    listing = ["--bootstrap-server", address, "--list", "--command-config", holder]
    done = run_tool("kafka-topics", listing)
    assert done.exit_code == 0, done.text
    did("--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    until(lambda: token_id not in did(*describing), lambda: "its end")
    until(lambda: run_tool("kafka-topics", listing).exit_code != 0, lambda: "no login any more")
