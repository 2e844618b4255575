"""Each case does beside recorded responses of Apache Kafka all that it did with Apache Kafka."""

import pytest

from tests.conformance.stories import DRAWN, case_modules, kept_rows, kept_stories


@pytest.mark.parametrize("module", [*case_modules(), DRAWN])
def test_a_case_does_what_it_did_with_apache(module: str) -> None:
    """For a new or changed case, `make record-apache` records its story again."""
    stories = [each for each in kept_stories() if each.row.case.name.partition(".")[0] == module]
    assert stories
    for story in stories:
        story.play()


def test_each_case_has_a_story_of_its_first_and_its_last_version() -> None:
    assert [each.row.name for each in kept_stories()] == [each.name for each in kept_rows()]
