"""The three incidents of docs/OPERATING.md, run anew: log and metrics say what the page says."""

import re
from pathlib import Path

import pytest

from tests.incidents import INCIDENTS
from tests.tidiness import CHECKOUT

PAGE = CHECKOUT / "docs" / "OPERATING.md"
METRICS = {
    "A leader is killed": {"kafka_controller_kafkacontroller_fencedbrokercount": 1},
    "A disk is full": {"kraft_wire_appends_refused_disk_full_total": 2},
    "A follower is slow": {"kafka_server_replicamanager_underreplicatedpartitions": 1},
}
"""Samples during each incident."""
SEEN_WITH_VALUES_ONLY = {
    *("kafka_consumergroup_lag", "kafka_consumergroup_current_offset"),
    "kraft_wire_rejections_total",
    *("kafka_server_produce_byte_rate", "kafka_server_fetch_byte_rate"),
    *("kafka_server_request_request_time", "kafka_server_controllermutation_tokens"),
    *("kafka_server_produce_throttle_time", "kafka_server_fetch_throttle_time"),
    *("kafka_server_request_throttle_time", "kafka_server_controllermutation_throttle_time"),
    "kraft_wire_throttled_connections",
    *("kafka_server_leaderreplication_byte_rate", "kafka_server_followerreplication_byte_rate"),
    "kafka_server_socketservermetrics_successful_authentication_total",
    "kafka_server_group_coordinator_metrics_consumer_group_count",
    "kafka_server_sharesessioncache_sharesessionscount",
    "kafka_server_sharesessioncache_sharepartitionscount",
    "kafka_server_sharegroupmetrics_recordacknowledgements_total",
    "kafka_server_sharepartitionmetrics_inflightmessagecount",
}
"""Metrics that have no sample where there is no group, no share session and no refusal."""


def told(title: str) -> list[list[str]]:
    """Return level, component and event of each line that the page shows of an incident."""
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition(f"### {title}\n")[2].partition("\n### ")[0]
    block = section.partition("```text\n")[2].partition("```")[0]
    return [line.split()[1:4] for line in block.splitlines()]


@pytest.mark.parametrize("title", INCIDENTS)
def test_incident_is_told_by_the_lines_and_metrics_of_the_page(title: str, tmp_path: Path) -> None:
    expected = told(title)
    assert len(expected) >= 3, "the page shows lines"
    log, samples = INCIDENTS[title](tmp_path)
    events = [line.split()[1:4] for line in log.splitlines()]
    assert [each for each in expected if each not in events] == [], log
    assert re.search(r"=-\d", log) is None, "no negative internal ids"
    for name, value in METRICS[title].items():
        assert samples[name] >= value, (name, samples[name])
    if title == "A follower is slow":
        named = set(re.findall(r"`((?:kafka|kraft_wire)_[a-z_]+[a-z])`", PAGE.read_text()))
        exported = {re.sub(r"(_bucket)?(\{.*)?$", "", each) for each in samples}
        assert len(named) > 20
        assert named - exported == SEEN_WITH_VALUES_ONLY
