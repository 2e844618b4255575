"""docs/dashboard.json: each expression names metrics and labels that a real node exports."""

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.incidents import exposition, slow_follower
from tests.tidiness import CHECKOUT

DASHBOARD = CHECKOUT / "docs" / "dashboard.json"
METRIC = re.compile(r"\b(?:kafka|kraft_wire|process)_[a-z_]+")
GROUPING = re.compile(r"by \(([a-z_, ]+)\)")
OF_PROMETHEUS = {"instance", "le"}
"""Labels that the scrape or the format adds."""
WITHOUT_SAMPLES = {
    "kafka_consumergroup_lag": {"group", "topic", "partition"},
    "kraft_wire_rejections_total": {"reason"},
}
"""Metrics that have none in the incident, with their labels; `test_metrics` has samples of them."""


def targets() -> list[dict[str, Any]]:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return [each for panel in dashboard["panels"] for each in panel.get("targets", [])]


def test_panels_cover_node_cluster_and_quorum_without_overlap() -> None:
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    assert [each["title"] for each in panels if each["type"] == "row"] == [
        *("Node", "Cluster", "Quorum")
    ]
    places = [tuple(each["gridPos"].values()) for each in panels]
    assert len({(x, y) for _, _, x, y in places}) == len(panels)
    assert all(x + width <= 24 for _, width, x, _ in places)
    assert len({each["id"] for each in panels}) == len(panels)


def test_every_metric_and_label_of_an_expression_is_exported(tmp_path: Path) -> None:
    pages: list[str] = []
    slow_follower(tmp_path, during=lambda log: pages.append(exposition(log)))
    exported: dict[str, set[str]] = defaultdict(set, WITHOUT_SAMPLES)
    for family in text_string_to_metric_families(pages[0]):
        for sample in family.samples:
            exported[sample.name] |= set(sample.labels)
    assert len(targets()) > 20
    for target in targets():
        names = METRIC.findall(target["expr"])
        assert names, target
        for name in names:
            assert name in exported, target["expr"]
            grouped = {
                label.strip()
                for labels in GROUPING.findall(target["expr"])
                for label in labels.split(",")
            }
            assert grouped - OF_PROMETHEUS <= exported[name], target["expr"]
        shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        assert shown <= grouped, target
