"""Bring the key tables of kraft_wire/settings up to a release's facts, keeping our own notes.

    java -cp 'var/apache/4.3.1/*' tests/settings/ConfigFacts.java > FACTS
    python -m tests.settings.refresh_keys FACTS

Facts (names, kinds, defaults, limits, scopes, synonyms) come from the release; the documentation of
each key is ours and stays. A key that is new gets an empty note, which tests/settings refuses.
"""

import json
import sys
from pathlib import Path
from typing import Any

TABLES = Path(__file__).parents[2] / "kraft_wire" / "settings"
FILES = {
    "broker": "broker_keys.json",
    "dynamic_broker": "dynamic_broker_keys.json",
    "topic": "topic_keys.json",
    "group": "group_keys.json",
    "client_metrics": "client_metrics_keys.json",
}
FACTORS = {"7": 1, "420000": 60_000, "25200000": 3_600_000}
"""What 7 became on the way through a synonym's converter tells the converter."""

Row = dict[str, Any]


def read_facts(text: str) -> dict[str, list[Row]]:
    """Return the rows of each table, reduced to what is not the default of a row."""
    facts = [json.loads(line) for line in text.splitlines()]
    broker = {fact["name"] for fact in facts if fact["area"] == "broker"}
    tables: dict[str, list[Row]] = {area: [] for area in FILES}
    for fact in facts:
        if fact["area"] == "dynamic_broker" and fact["name"] in broker:
            continue  # described by the broker's own table; only the extra names stay
        tables[fact["area"]].append(_row(fact))
    return tables


def _row(fact: Row) -> Row:
    row: Row = {key: fact[key] for key in ("name", "kind", "default", "importance")}
    if fact["valid"]:
        row["valid"] = fact["valid"]
    if fact["list"] is not None:
        row["list"] = fact["list"]
    if fact["area"] == "dynamic_broker":
        row["scope"] = "cluster-wide"
    elif fact["scope"] != "read-only":
        row["scope"] = fact["scope"]
    synonyms = [_synonym(text) for text in fact["synonyms"] if text != fact["name"]]
    if fact["area"] == "topic":
        synonyms = [_synonym(text) for text in fact["synonyms"]]
    if synonyms:
        row["synonyms"] = synonyms
    if fact["internal"]:
        row["internal"] = True
    return row


def _synonym(text: str) -> list[str | int]:
    name, _, converted = text.partition(":")
    return [name, FACTORS[converted] if converted else 1]


def refresh(tables: dict[str, list[Row]]) -> None:
    """Write the tables, one key per line."""
    for area, rows in tables.items():
        path = TABLES / FILES[area]
        old = json.loads(path.read_text()) if path.exists() else []
        notes = {row["name"]: row["documentation"] for row in old}
        lines = [
            json.dumps(row | {"documentation": notes.get(row["name"], "")}, ensure_ascii=False)
            for row in rows
        ]
        path.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    refresh(read_facts(Path(sys.argv[1]).read_text()))
