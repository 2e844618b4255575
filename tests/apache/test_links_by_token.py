"""Our broker on an Apache Kafka 4.3.1 node; both log in to each other by tokens (KIP-768).

Both take theirs from one identity provider of this test, and check the other's by its keys. The
tokens live for a few seconds.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apache.test_renewed_links import BROKER, LISTENERS, both_makes, in_sync, replicate
from tests.server.test_links_by_token import ALLOWED, bearer_settings, providing
from tests.server.test_renewed_links import CLOSED, RENEWED, counts
from tests.waiting import until

pytestmark = [pytest.mark.java, pytest.mark.slow]


def test_tokens_log_in_our_broker_and_apaches_node_to_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our links to the controller and the leader, and Apache's link to our leader."""
    with providing(tmp_path) as provider:
        settings = {**LISTENERS, **bearer_settings(provider, "CONTROLLER", "SECURE")}
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-D{ALLOWED}={settings[ALLOWED]}")
        with both_makes(tmp_path, settings) as (apache, ours):
            replicate(apache)
            until(lambda: counts(ours)[RENEWED, "SECURE"] >= 3)
            assert counts(ours)[CLOSED, "SECURE"] == 0
            until(lambda: in_sync(apache.bootstrap) == [[1, BROKER], [1, BROKER]])
            assert "peer_login_failed" not in ours.text
            assert "ailed re-authentication" not in apache.text
    assert len(provider.given) >= 6
