"""Settings of each kind of group: its own value, else the broker's, within its limits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.broker.groups.consumer import group_settings as consumer
from kraft_wire.broker.groups.share import group_settings as share
from kraft_wire.broker.groups.streams import group_settings as streams
from kraft_wire.metadata.image import GROUP_RESOURCE, MetadataImage

KINDS = {"consumer": consumer, "share": share, "streams": streams}
SETTINGS = ("session_timeout_ms", "heartbeat_interval_ms", "assignment_interval_ms")


def environment(kind: str, setting: str, own: str | None) -> Any:
    """An environment whose settings are those of one kind and one setting alone."""
    values = {
        f"group_{kind}_{setting}": 5_000,
        f"group_{kind}_min_{setting}": 3_000,
        f"group_{kind}_max_{setting}": 8_000,
    }
    key = f"{kind}.{setting.replace('_', '.')}"
    configs = {} if own is None else {(GROUP_RESOURCE, "group"): {key: own}}
    image = MetadataImage(configs=configs)
    return SimpleNamespace(settings=lambda: SimpleNamespace(**values), image=lambda: image)


@pytest.mark.parametrize(
    ("own", "effective"),
    [
        (None, 5_000),
        ("6000", 6_000),
        ("3000", 3_000),
        ("2999", 3_000),
        ("8000", 8_000),
        ("8001", 8_000),
        ("text", 5_000),
    ],
)
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_settings_of_its_own(
    kind: str, setting: str, own: str | None, effective: int
) -> None:
    """KIP-1240: a stored value outside the limits of now counts as the nearest limit."""
    found = getattr(KINDS[kind], setting)(environment(kind, setting, own), "group")
    assert found == effective
