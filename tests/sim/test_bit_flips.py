"""Spoilt files: a sample of the campaign, and proof that it sees what it is for."""

from dataclasses import replace

import pytest

from kraft_wire.sim.crash import bit_flips
from kraft_wire.sim.crash.bit_flip_fixtures import KINDS, Fixture, Kind
from kraft_wire.sim.crash.bit_flips import flip_table, run_all, run_kind
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint

SAMPLE_BYTES = 4096


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_nothing_spoilt_is_read_as_something_else(kind: Kind) -> None:
    report = run_kind(kind, size_bytes=SAMPLE_BYTES, stride=101)
    assert report.violations == 0, report.example
    assert report.file_bytes >= SAMPLE_BYTES
    assert report.flips >= 8 * SAMPLE_BYTES // 102
    assert report.refused + report.right + report.unseen == report.flips + report.others
    assert report.unseen == 0 or not kind.is_checked


def broken(name: str) -> Kind:
    """A kind whose reader takes what it gets."""
    kind = next(kind for kind in KINDS if kind.name == name)
    fixture = next(kind.fixtures())
    fooled = Fixture(fixture.content, lambda spoilt: spoilt, fixture.content)
    return replace(kind, fixtures=lambda: iter([fooled]))


def test_a_reader_that_sees_nothing_is_seen() -> None:
    report = run_kind(broken("producer .snapshot"), size_bytes=1, stride=7)
    assert report.violations == report.unseen == report.flips + report.others
    assert report.example.startswith("bit 0 of byte 0: other content")
    report = run_kind(broken("quorum-state"), size_bytes=1, stride=7)
    assert report.unseen > report.violations == 0


def test_an_error_that_nobody_foresaw_is_a_violation() -> None:
    def fail(spoilt: bytes) -> object:
        raise IndexError("out of range") if spoilt[0] else CorruptCheckpoint("x", "y")

    kind = Kind("x", True, lambda: iter([Fixture(b"abc", fail, None)]))
    report = run_kind(kind, size_bytes=1)
    assert report.violations > 0
    assert report.refused > 0
    assert "IndexError: out of range" in report.example


def test_all_kinds_run_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bit_flips, "KINDS", KINDS[2:3])
    (report,) = run_all(100, 50)
    assert flip_table([report, replace(report, violations=1)]).row_count == 2
