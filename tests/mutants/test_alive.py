"""A command with a mutant in its code: the bug shows, and what cannot be run is refused."""

import pytest

from mutants.alive import main


@pytest.mark.parametrize("arguments", [[], ["M48"], ["X99", "python"], ["M48", "bash"]])
def test_what_is_no_mutant_or_no_command_ends_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert "mutants.alive ID COMMAND" in capsys.readouterr().err


def test_command_runs_on_the_spoilt_code(capfd: pytest.CaptureFixture[str]) -> None:
    shown = "import inspect; from kraft_wire.raft import elections as e; "
    shown += "print(inspect.getsource(e.is_up_to_date))"
    assert main(["m39", "python", "-c", shown]) == 0
    assert "return True" in capfd.readouterr().out
