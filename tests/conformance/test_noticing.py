"""Each case reports the same changed fields as before: none of its checks is lost."""

import json
from collections import defaultdict

import pytest

from tests.conformance.noticing import NOTICED, newest_stories, noticed_by
from tests.conformance.stories import case_modules

BEFORE = defaultdict[str, dict[str, list[str]]](dict)
"""By module of cases."""
for name, fields in json.loads(NOTICED.read_text()).items():
    BEFORE[name.partition(".")[0]][name] = fields


@pytest.mark.parametrize("module", case_modules())
def test_every_case_notices_what_it_noticed_before(module: str) -> None:
    """For an intended change `python -m tests.conformance.noticing` writes the list anew."""
    stories = newest_stories().items()
    now = {name: noticed_by(story) for name, story in stories if name.partition(".")[0] == module}
    assert now == BEFORE[module]
