"""What the endpoint adds to a node's metrics, as Prometheus's own parser reads it.

The host is played: none of its numbers equals another.
"""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from kraft_wire.cli.server import metrics_endpoint
from kraft_wire.node.metrics.families import Buckets, Family, Histogram, LabelledFamily

KAFKA = "kafka_server_socketservermetrics_connection"


def samples_of(monkeypatch: pytest.MonkeyPatch, *families: Any) -> dict[tuple[str, ...], float]:
    """Return every value of a played host and some families of its node, by name and labels."""
    quotas = SimpleNamespace(accept_rates=lambda now_ms: {"A": now_ms / 1_000, "B": 0.5})
    host: Any = SimpleNamespace(
        node=None,
        events=None,
        now_ms=lambda: 7_000,
        connection_quotas=quotas,
        log=SimpleNamespace(rejections=Counter({"frame_too_long": 3})),
        connections={1: None, 2: None},
        memory=SimpleNamespace(used_bytes=4_096),
    )
    monkeypatch.setattr(metrics_endpoint, "node_metrics", lambda *_: families)
    monkeypatch.setattr(metrics_endpoint, "request_metrics", lambda *_: ())
    monkeypatch.setattr(metrics_endpoint, "quota_metrics", lambda *_: ())
    registry = CollectorRegistry(auto_describe=False)
    registry.register(metrics_endpoint._HostCollector(host))
    return {
        (family.type, sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(generate_latest(registry).decode())
        for sample in family.samples
    }


def test_the_host_shows_each_number_under_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    found = samples_of(monkeypatch)
    idle = found.pop(("gauge", "kafka_server_raft_metrics_poll_idle_ratio_avg"))
    assert 0 <= idle <= 1
    assert found == {
        ("gauge", f"{KAFKA}_accept_rate", "A"): 7.0,
        ("gauge", f"{KAFKA}_accept_rate", "B"): 0.5,
        ("gauge", f"{KAFKA}_count"): 2,
        ("gauge", "kraft_wire_queued_request_bytes"): 4_096,
        ("counter", "kraft_wire_rejections_total", "frame_too_long"): 3,
    }


def test_every_form_of_a_family_keeps_its_kind_labels_and_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = samples_of(
        monkeypatch,
        Family("plain", False, "p", "", {"": 1}),
        Family("counted", True, "c", "topic", {"t": 2, "u": 3}),
        LabelledFamily("several", False, "s", ("group", "topic"), {("g", "t"): 4}),
        LabelledFamily("several_counted", True, "s", ("group", "topic"), {("g", "t"): 5}),
        Histogram("waits", "w", "api", (0.1, 0.5), {"Fetch": Buckets([2, 3, 4], 6.5)}),
    )
    wanted = {
        ("gauge", "plain"): 1,
        ("counter", "counted_total", "t"): 2,
        ("counter", "counted_total", "u"): 3,
        ("gauge", "several", "g", "t"): 4,
        ("counter", "several_counted_total", "g", "t"): 5,
        # Each bucket of Prometheus counts all values up to its bound.
        ("histogram", "waits_bucket", "Fetch", "0.1"): 2,
        ("histogram", "waits_bucket", "Fetch", "0.5"): 5,
        ("histogram", "waits_bucket", "Fetch", "+Inf"): 9,
        ("histogram", "waits_count", "Fetch"): 9,
        ("histogram", "waits_sum", "Fetch"): 6.5,
    }
    assert {key: found[key] for key in wanted} == wanted
