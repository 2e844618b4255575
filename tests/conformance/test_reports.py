"""The reports over made-up outcomes: every figure, every field, and what needs escaping."""

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

from kraft_wire.conformance.case import Case, Listener
from kraft_wire.conformance.dump import exchange_lines
from kraft_wire.conformance.reports.json_report import json_report
from kraft_wire.conformance.reports.junit import junit_report
from kraft_wire.conformance.reports.page import html_report
from kraft_wire.conformance.reports.text import text_report
from kraft_wire.conformance.verdict import Exchange, Outcome, Verdict
from kraft_wire.wire.frame import frame_prefix
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from kraft_wire.wire.generated.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kraft_wire.wire.header import RequestHeader, encode_request_header, encode_response_header

ADDRESS = "h<1>:9092"


def framed(data: bytes) -> bytes:
    return frame_prefix(len(data)) + data


def exchange(error: int, *, answered: bool = True) -> Exchange:
    request = HeartbeatRequest(group_id="g" * 80, generation_id=5, member_id="m")
    header = RequestHeader(HeartbeatRequest.API_KEY, 4, 9, "client")
    response = HeartbeatResponse(error_code=error)
    return Exchange(
        HeartbeatRequest.API_KEY,
        4,
        framed(encode_request_header(header) + request.encode(4)),
        framed(encode_response_header(HeartbeatRequest.API_KEY, 4, 9) + response.encode(4))
        if answered
        else None,
    )


OUTCOMES = [
    Outcome("beat.passes", 0, Verdict.PASSED, 0.25, "peace"),
    Outcome("beat.passes", 1, Verdict.PASSED, 0.5, "peace"),
    Outcome(
        *("beat.fails", 4, Verdict.FAILED, 1.25, "a < b", "c & d\x01", "error_code"),
        (exchange(3), exchange(7)),
    ),
    Outcome("area.lacks", 2, Verdict.NOT_SUPPORTED, 0.0, "more", "offers no version"),
    Outcome("area.lacks", 3, Verdict.NOT_SUPPORTED, 0.0, "more", "offers no version"),
    Outcome("area.needs", 3, Verdict.NOT_SUPPORTED, 0.0, "more", "no address"),
    Outcome(
        *("area.breaks", 1, Verdict.ERROR, 2.0, "an answer", "OSError: gone", ""),
        (exchange(0, answered=False),),
    ),
]
CASES = [
    Case(
        name, "Heartbeat", (0, 4), f"KIP of {name} <i>", "It & they.", "Do.", Listener.BROKER, print
    )  # type: ignore[arg-type]  # never judged
    for name in dict.fromkeys(each.name for each in OUTCOMES)
]
AGAIN = f"kraft-wire conform --bootstrap-server {ADDRESS} --only"


def test_json_has_counts_and_a_row_for_each_outcome() -> None:
    text = json_report(OUTCOMES, ADDRESS, "apache")
    assert text.endswith("}\n")
    report = json.loads(text)
    rows = report.pop("rows")
    assert report == {
        "address": ADDRESS,
        "profile": "apache",
        "counts": {"passed": 2, "failed": 1, "differs": 0, "not supported": 3, "error": 1},
    }
    assert rows[0] == {"name": "beat.passes", "version": 0, "verdict": "passed", "seconds": 0.25}
    assert rows[3] == {
        "name": "area.lacks",
        "version": 2,
        "verdict": "not supported",
        "seconds": 0.0,
        "expected": "more",
        "seen": "offers no version",
    }
    first, second = exchange(3), exchange(7)
    assert second.response is not None
    exchanges = rows[2].pop("exchanges")
    assert rows[2] == {
        "name": "beat.fails",
        "version": 4,
        "verdict": "failed",
        "seconds": 1.25,
        "expected": "a < b",
        "seen": "c & d\x01",
        "path": "error_code",
        "run_again": f"{AGAIN} beat.fails/4",
    }
    assert [each["request"] for each in exchanges] == [first.request.hex(), second.request.hex()]
    assert exchanges[1] == {
        "api_key": 12,
        "version": 4,
        "request": second.request.hex(),
        "response": second.response.hex(),
    }
    assert rows[6]["exchanges"][0]["response"] is None
    assert rows[6]["run_again"] == f"{AGAIN} area.breaks/1"


def test_junit_counts_by_api_and_marks_the_field() -> None:
    root = ElementTree.fromstring(junit_report(OUTCOMES))
    assert root.tag == "testsuites"
    suites = [each.attrib for each in root]
    names = ("name", "tests", "failures", "errors", "skipped", "time")
    assert [tuple(each[name] for name in names) for each in suites] == [
        ("area", "4", "0", "1", "3", "2.000"),
        ("beat", "3", "1", "0", "0", "2.000"),
    ]
    cases = root.findall(".//testcase")
    assert [(each.attrib["classname"], each.attrib["name"]) for each in cases] == [
        ("conform.area", "lacks/2"),
        ("conform.area", "lacks/3"),
        ("conform.area", "needs/3"),
        ("conform.area", "breaks/1"),
        ("conform.beat", "passes/0"),
        ("conform.beat", "passes/1"),
        ("conform.beat", "fails/4"),
    ]
    assert [[one.tag for one in each] for each in cases] == [
        *([["skipped"]] * 3),
        *(["error"], [], [], ["failure"]),
    ]
    assert cases[0][0].text is None
    failure = cases[-1][0]
    assert failure.attrib["message"].startswith("expected a < b, got c & d")
    marked = [line for line in (failure.text or "").splitlines() if line.startswith(">>")]
    assert [line.split()[-3:] for line in marked] == [["error_code", "=", "7"]]
    assert cases[-1].attrib["time"] == "1.250"


def test_text_has_each_failure_each_reason_once_and_a_table() -> None:
    lines = list(text_report(OUTCOMES, ADDRESS))
    assert lines[:3] == [
        "beat.fails/4: failed",
        "  expected  a < b",
        "  got       c & d\x01  at error_code",
    ]
    assert len([line for line in lines if line.lstrip().startswith("HeartbeatResponse")]) == 1
    again = lines.index(f"  run again {AGAIN} beat.fails/4")
    assert lines[again + 1 : again + 5] == [
        "",
        "area.breaks/1: error",
        "  expected  an answer",
        "  got       OSError: gone",
    ]
    assert "    no HeartbeatResponse" in lines
    assert lines[-7:] == [
        "",
        "not supported, 2 rows: offers no version",
        "not supported, 1 row: no address",
        "",
        "API   rows  passed  failed  differs  not supported  error  seconds",
        "area     4       0       0        0              3      1      2.0",
        "beat     3       2       1        0              0      0      2.0",
    ]
    assert list(text_report(OUTCOMES[:2], ADDRESS)) == [
        "API   rows  passed  failed  differs  not supported  error  seconds",
        "beat     2       2       0        0              0      0      0.8",
    ]


class Page(HTMLParser):
    """The rows of the page: whether each is open, its text for the filter, and what is shown."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[tuple[bool, str, str]] = []
        self.cells: list[str] = []
        self.tag = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tag = tag
        if tag == "details":
            given = dict(attrs)
            self.rows.append(("open" in given, given["data-text"] or "", ""))

    def handle_data(self, data: str) -> None:
        if self.tag in ("td", "th"):
            self.cells.append(data)
        elif self.rows:
            is_open, text, shown = self.rows[-1]
            self.rows[-1] = is_open, text, shown + data


def test_page_has_failures_first_and_open_and_escapes_everything() -> None:
    text = html_report(OUTCOMES, CASES, ADDRESS, "apache")
    assert "<i>" not in text
    assert "<1>" not in text
    assert "2 of 7 rows failed; profile apache" in text
    page = Page(text)
    assert [(is_open, words.split()[0]) for is_open, words, _ in page.rows] == [
        (True, "beat.fails/4"),
        (True, "area.breaks/1"),
        (False, "area.lacks/2"),
        (False, "area.lacks/3"),
        (False, "area.needs/3"),
        (False, "beat.passes/0"),
        (False, "beat.passes/1"),
    ]
    assert page.rows[0][1] == "beat.fails/4 failed kip of beat.fails <i> it & they."
    shown = page.rows[0][2]
    assert "Expected a < b; got c & d\x01 at error_code" in shown
    assert f"{AGAIN} beat.fails/4" in shown
    assert shown.count("HeartbeatRequest version 4") == 2
    assert re.findall("<mark>.*</mark>", text) == [
        line for line in re.findall("<mark>.*</mark>", text) if "error_code = 7" in line
    ]
    assert len(re.findall("<mark>", text)) == 1
    assert "Expected more; got offers no version" in page.rows[2][2]
    assert AGAIN not in page.rows[2][2]
    assert "Expected" not in page.rows[-1][2]
    assert page.cells == [
        *("API", "rows", "passed", "failed", "differs", "not supported", "seconds"),
        *("area", "4", "0", "1", "0", "3", "2.0"),
        *("beat", "3", "2", "1", "0", "0", "2.0"),
    ]
    assert "no row failed; profile p" in html_report(OUTCOMES[:2], CASES, ADDRESS, "p")


# -- differences and lost brokers ---------------------------------------------------------------


def test_difference_is_told_from_a_failure_in_every_report() -> None:
    details = ("1 as of a release", "7", "error_code", (exchange(7),))
    differing = Outcome("beat.fails", 4, Verdict.DIFFERS, 0.5, *details)
    lines = list(text_report([differing], ADDRESS))
    assert lines[0] == "beat.fails/4: differs"
    assert lines[-1].split() == ["beat", "1", "0", "0", "1", "0", "0", "0.5"]
    report = json.loads(json_report([differing], ADDRESS, "apache"))
    assert (report["counts"]["failed"], report["counts"]["differs"]) == (0, 1)
    assert report["rows"][0]["path"] == "error_code"
    suite = ElementTree.fromstring(junit_report([differing]))[0]
    assert (suite.attrib["failures"], suite[0][0].tag) == ("1", "failure")
    text = html_report([OUTCOMES[0], differing], CASES, ADDRESS, "apache")
    assert "no row failed, 1 differs; profile apache" in text
    (is_open, words, shown), _ = Page(text).rows
    assert not is_open
    assert words.startswith("beat.fails/4 differs")
    assert f"{AGAIN} beat.fails/4" in shown


def test_rows_without_a_broker_are_shown_once() -> None:
    lost = ("an answer", "ConnectionRefusedError: refused")
    rows = [Outcome("area.breaks", each, Verdict.ERROR, 0.0, *lost) for each in range(3)]
    lines = list(text_report(rows, ADDRESS))
    assert lines[:2] == ["area.breaks/0: error", "  expected  an answer"]
    assert "error, 3 rows: ConnectionRefusedError: refused" in lines
    assert not any(line.startswith("area.breaks/1") for line in lines)


# -- exchanges ---------------------------------------------------------------------------------


def test_exchange_shows_every_field_with_its_bytes() -> None:
    lines = list(exchange_lines(exchange(7), "error_code"))
    assert [" ".join(line.split()) for line in lines] == [
        "HeartbeatRequest version 4, 110 bytes",
        "0 00 00 00 6a size = 106",
        "4 00 0c header.request_api_key = 12",
        "6 00 04 header.request_api_version = 4",
        "8 00 00 00 09 header.correlation_id = 9",
        "12 00 06 header.client_id.length = 6",
        "14 63 6c 69 65 6e 74 header.client_id = 'client'",
        "20 00 header.tagged_fields.count = 0",
        "21 51 group_id.length = 80",
        f"22 {'67 ' * 15}67… group_id = '{'g' * 59}…",
        "102 00 00 00 05 generation_id = 5",
        "106 02 member_id.length = 1",
        "107 6d member_id = 'm'",
        "108 00 group_instance_id.length = -1",
        "109 00 tagged_fields.count = 0",
        "HeartbeatResponse version 4, 16 bytes",
        "0 00 00 00 0c size = 12",
        "4 00 00 00 09 header.correlation_id = 9",
        "8 00 header.tagged_fields.count = 0",
        "9 00 00 00 00 throttle_time_ms = 0",
        ">> 13 00 07 error_code = 7",
        "15 00 tagged_fields.count = 0",
    ]


def test_exchange_that_breaks_is_shown_up_to_there() -> None:
    whole = exchange(0)
    assert whole.response is not None
    cut = Exchange(whole.api_key, 4, whole.request, framed(whole.response[4:-4]))
    lines = [" ".join(line.split()) for line in exchange_lines(cut)]
    assert lines[-2:] == [
        "9 00 00 00 (unread)",
        ">> 9 throttle_time_ms at byte 9: int32 needs 4 bytes, 3 remain",
    ]


def test_long_exchanges_and_unknown_keys_are_shown_in_part() -> None:
    topics = [OffsetFetchRequestTopic(name="t", partition_indexes=list(range(300)))]
    request = OffsetFetchRequest(group_id="g", topics=topics)
    header = RequestHeader(OffsetFetchRequest.API_KEY, 1, 9, "client")
    sent = framed(encode_request_header(header) + request.encode(1))
    lines = list(exchange_lines(Exchange(OffsetFetchRequest.API_KEY, 1, sent, None)))
    assert len(lines) == 1 + 200 + 1 + 1
    assert lines[-2:] == ["   … 112 more fields", "no OffsetFetchResponse"]
    strange = Exchange(30_000, 0, bytes(range(80)), None)
    assert list(exchange_lines(strange)) == [
        "request, 80 bytes: " + " ".join(f"{each:02x}" for each in range(64))
    ]
