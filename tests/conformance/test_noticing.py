"""Each case reports the same changed fields as before: none of its checks is lost."""

import json
from pathlib import Path

from tests.conformance.noticing import NOTICED, noticed_by_cases


def test_every_case_notices_what_it_noticed_before(tmp_path: Path) -> None:
    """For an intended change `python -m tests.conformance.noticing` writes the list anew."""
    before = json.loads(NOTICED.read_text())
    now = noticed_by_cases(tmp_path)
    assert {name for name, fields in now.items() if fields is None} == {
        "fetch.waits_no_longer_than_asked"
    }, "only a case that measures time cannot run against recorded frames"
    assert {name: fields for name, fields in now.items() if fields != before.get(name)} == {}
    assert now.keys() == before.keys()
