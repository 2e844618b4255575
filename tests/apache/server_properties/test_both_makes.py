"""What a node makes of its server.properties, beside `KafkaConfig` and `LogConfig` of 4.3.1."""

from random import Random

import pytest

from tests.apache.server_properties.comparing import Difference, answers_of_apache, differences
from tests.apache.server_properties.drawing import drawn_entries

pytestmark = pytest.mark.java

FILES = 3_000


@pytest.fixture(scope="module")
def compared() -> tuple[list[dict[str, object]], list[Difference]]:
    """The answers of 4.3.1 to drawn files, and where ours differ."""
    chance = Random(47)
    files = [drawn_entries(chance) for _ in range(FILES)]
    answers = answers_of_apache(files)
    found = [
        each
        for entries, answer in zip(files, answers, strict=True)
        for each in differences(entries, answer)
    ]
    return answers, found


def test_a_file_is_refused_or_read_as_by_apache(
    compared: tuple[list[dict[str, object]], list[Difference]],
) -> None:
    _, found = compared
    assert found == []


def test_many_drawn_files_are_refused_and_many_are_taken(
    compared: tuple[list[dict[str, object]], list[Difference]],
) -> None:
    answers, _ = compared
    refused = sum("error" in answer for answer in answers)
    assert FILES // 4 < refused < FILES * 3 // 4
