"""Every metadata.version has the level that Apache's tool gives its name."""

from __future__ import annotations

import re

import pytest

from kraft_wire.metadata.features import RELEASE_LEVELS
from tests.apache.tools import run_tool

pytestmark = pytest.mark.java


@pytest.mark.parametrize("name", RELEASE_LEVELS)
def test_level_is_that_of_apache(name: str) -> None:
    told = run_tool("kafka-features", ["version-mapping", "--release-version", name])
    levels = re.findall(r"^metadata\.version=(\d+) ", told.stdout, re.MULTILINE)
    assert levels == [str(RELEASE_LEVELS[name])], told.text
