"""Differences that are intended, each with its reason; docs/DEVIATIONS.md lists them for users."""

import tomllib
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from tests.apache.schema_drawn.campaign import Finding

__all__ = ["known_reason"]

_FILE = Path(__file__).with_name("known.toml")


@cache
def _known() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(_FILE.read_text())["difference"]
    return found


def known_reason(finding: Finding) -> str | None:
    """Return the reason that `known.toml` gives for a difference, None without one."""
    seen = finding.difference
    for each in _known():
        if (
            fnmatchcase(finding.api, each["api"])
            and fnmatchcase(seen.path, each.get("path", "*"))
            and fnmatchcase(str(seen.apache), each.get("apache", "*"))
            and fnmatchcase(str(seen.ours), each.get("ours", "*"))
        ):
            reason: str = each["reason"]
            return reason
    return None
