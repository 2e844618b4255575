"""What `kraft-wire conform` chooses before it asks a broker, and which exit code verdicts mean."""

from typing import Any

import pytest
import typer

from kraft_wire.conformance import command
from kraft_wire.conformance.verdict import Verdict


def test_broker_is_the_options_or_else_that_of_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KRAFT_WIRE_BOOTSTRAP_SERVER", raising=False)
    assert command._place(None, None) == "127.0.0.1:9092"
    monkeypatch.setenv("KRAFT_WIRE_BOOTSTRAP_SERVER", "here:1")
    assert command._place(None, None) == "here:1"
    assert command._place("a:1", None) == "a:1"
    assert command._place("a:1", "c:2") == "a:1,c:2"
    assert command._place(None, "c:2") == ",c:2", "a controller alone"


@pytest.mark.parametrize("verdict", Verdict)
def test_failures_differences_and_errors_alone_end_with_1(verdict: Verdict) -> None:
    class Judged:
        def __init__(self, verdict: Verdict) -> None:
            self.verdict = verdict

    outcomes: Any = [Judged(Verdict.PASSED), Judged(verdict)]
    if verdict in (Verdict.FAILED, Verdict.DIFFERS, Verdict.ERROR):
        with pytest.raises(typer.Exit) as ended:
            command._exit_by(outcomes)
        assert ended.value.exit_code == 1
    else:
        command._exit_by(outcomes)
