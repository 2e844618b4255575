"""Our broker on an Apache Kafka 4.3.1 node; both log in to each other by tokens (KIP-768).

Both take theirs from one identity provider of this test, each for its own client id, and check the
other's by its keys. The tokens live for a few seconds.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apache.secured_node import SecuredApache
from tests.apache.test_our_broker_on_apaches_controller import WITHOUT
from tests.apache.test_renewed_links import BROKER, in_sync, replicate
from tests.broker_process import BrokerProcess
from tests.ports import free_port
from tests.server.test_links_by_token import ALLOWED, bearer_settings, providing
from tests.server.test_renewed_links import CLOSED, RENEWED, counts
from tests.waiting import until

pytestmark = [pytest.mark.java, pytest.mark.slow]


def test_tokens_log_in_our_broker_and_apaches_node_to_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our links to the controller and the leader, and Apache's link to our leader."""
    with providing(tmp_path) as provider:
        settings = {
            "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,"
            "SECURE:SASL_PLAINTEXT",
            "inter.broker.listener.name": "SECURE",
            **bearer_settings(provider, "CONTROLLER", "SECURE"),
        }
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-D{ALLOWED}={settings[ALLOWED]}")
        apache = SecuredApache(tmp_path / "apache", "SASL_PLAINTEXT", settings)
        apache.directory.mkdir()
        apache.format_options = [*apache.format_options, *WITHOUT]
        (tmp_path / "ours").mkdir()
        ours = BrokerProcess(
            tmp_path / "ours",
            BROKER,
            cluster_id=apache.cluster_id,
            voters=f"1@{apache.controller_bootstrap}",
            overrides={**settings, "metrics.port": "-1"},
        )
        secure = f"SECURE://127.0.0.1:{free_port()}"
        ours._settings["listeners"] = f"PLAINTEXT://{ours.bootstrap},{secure}"
        with apache, ours:
            replicate(apache)
            until(lambda: counts(ours)[RENEWED, "SECURE"] >= 3)
            assert counts(ours)[CLOSED, "SECURE"] == 0
            until(lambda: in_sync(apache.bootstrap) == [[1, BROKER], [1, BROKER]])
            assert "peer_login_failed" not in ours.text
            assert "ailed re-authentication" not in apache.text
    assert len(provider.given) >= 6
