"""The availability rule itself: what is missing is named, once, in table order."""

from __future__ import annotations

import pytest

from tests import judges


def test_missing_programs_with_everything_present_is_empty() -> None:
    assert judges.missing_programs(judges.PROGRAMS, which=lambda name: f"/usr/bin/{name}") == []


def test_missing_programs_names_only_what_the_wanted_judges_need() -> None:
    present = {"java", "javac"}
    missing = judges.missing_programs(
        ["kcat", "java"], which=lambda name: name if name in present else None
    )
    assert missing == ["mvn", "kcat"]
    assert judges.not_run_reason(missing) == "not run: mvn, kcat missing"


@pytest.mark.parametrize(("value", "required"), [("true", True), ("TRUE", True), ("", False)])
def test_judges_are_required_only_in_ci(
    monkeypatch: pytest.MonkeyPatch, value: str, required: bool
) -> None:
    monkeypatch.setenv("CI", value)
    assert judges.judges_are_required() is required
