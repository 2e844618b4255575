"""Each client on one way on which it works, and on one on which it fails as on Apache's node.

`make clients-secured` has all ways, on both makes. Failures were recorded from 4.3.1 (30 November
2026, the same command with `--json`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.registry import CLIENTS
from tests.clients.running import Result
from tests.clients.secured.matrix import Cell, cell, differences, failure_of, is_alike
from tests.clients.secured.nodes import started
from tests.clients.secured.ways import Ways
from tests.clients.test_clients import why_not_ready

pytestmark = [pytest.mark.client, pytest.mark.slow, pytest.mark.timeout(600)]
OBSERVED = Path(__file__).with_name("observed.json")
WAYS = {
    "kcat": ("SASL_SSL PLAIN", "another authority"),
    "confluent-kafka": ("SASL_SSL OAUTHBEARER", "unknown mechanism"),
    "kafka-python": ("mutual SSL", "another authority"),
    "aiokafka": ("SASL_PLAINTEXT SCRAM-SHA-256", "certificate for another host"),
    "kafka-clients": ("SASL_SSL delegation token", "wrong password, PLAIN"),
    "franz-go": ("SASL_PLAINTEXT delegation token", "token of a stranger"),
    "sarama": ("SASL_SSL SCRAM-SHA-512", "expired certificate of the node"),
    "kafka-go": ("SASL_PLAINTEXT PLAIN", "unknown user, SCRAM-SHA-512"),
    "platformatic": ("SASL_PLAINTEXT OAUTHBEARER", "wrong password, SCRAM-SHA-512"),
}
"""By client: a way on which it works, one on which it does not."""
QUICK = ("keys",)


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    home = tmp_path_factory.mktemp("secured")
    with started(home / "node", is_apache=False) as node:
        yield Ways(node, home / "files")


def clients() -> list[object]:
    """The clients, marked with the judge that each needs."""
    return [
        pytest.param(name, id=name, marks=[getattr(pytest.mark, judge)] if judge else [])
        for name, judge in ((each.name, each.judge) for each in CLIENTS.values())
    ]


def ready(name: str) -> None:
    reason = why_not_ready(CLIENTS[name])
    assert reason is None, reason


@pytest.mark.parametrize("name", clients())
def test_client_works_with_a_login(ways: Ways, name: str) -> None:
    """SEC-TLS-01, SEC-SASL-08: another protocol and login for each."""
    ready(name)
    way = next(each for each in ways.good() if each.name == WAYS[name][0])
    found = cell(ways, CLIENTS[name], way, QUICK)
    assert found.reason is None
    assert found.is_as_wanted, found.results


@pytest.mark.parametrize("name", clients())
def test_client_fails_as_on_apache(ways: Ways, name: str) -> None:
    """SEC-SASL-13, SEC-TLS-07: the words that its users know."""
    ready(name)
    way = next(each for each in ways.bad() if each.name == WAYS[name][1])
    found = cell(ways, CLIENTS[name], way)
    assert found.is_as_wanted, found.results
    raised, kinds = json.loads(OBSERVED.read_text(encoding="utf-8"))[f"{name}, {way.name}"]
    assert is_alike(failure_of(found.results["connect"]), (raised, frozenset(kinds)))


def test_another_failure_is_a_difference() -> None:
    def failed(words: str, seconds: float = 0.1) -> list[Cell]:
        return [Cell("c", "w", False, {"connect": Result("fail", words, seconds)})]

    theirs = failed("refused by 127.0.0.1:4711 | FooError after 3 s | FooError after 4 s")
    assert differences(failed("refused by 127.0.0.1:1 | FooError after 9 s"), theirs) == []
    assert differences(failed("refused by 127.0.0.1:1 | BarError"), theirs) != []
    assert differences(failed("closed by 127.0.0.1:1 | FooError"), theirs) != []
    assert differences(failed("refused by 127.0.0.1:4711 | FooError", 2.3), theirs) != []
    both = failed("refused by 127.0.0.1:1 | BarError | FooError")
    assert differences(both, theirs) == [], "a client does not always say all"
