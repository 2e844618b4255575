"""Every schema feature: the module that it gives, and the bytes that the module reads and writes.

The bytes are derived by hand from the rules of the protocol guide and KIP-482, KIP-893. After an
intended change of the generator run with REWRITE=1 and read the difference.
"""

import os
import subprocess
import sys
from struct import pack
from typing import Any

import pytest

from codegen.plan import plan_modules
from codegen.spec import parse_message
from kraft_wire.wire.message import Message
from kraft_wire.wire.primitives import Unusual
from tests.codegen.feature_modules import FEATURES, import_feature, plan_feature, render_feature

NAMES = sorted(path.stem for path in FEATURES.glob("*.json"))
UUID = bytes(range(16))


@pytest.mark.parametrize("name", NAMES)
def test_feature_gives_the_expected_module(name: str) -> None:
    expected = FEATURES / f"{name}.py.txt"
    rendered = render_feature(name)
    if os.environ.get("REWRITE"):
        expected.write_text(rendered)
    assert rendered == expected.read_text()


CASES: list[tuple[str, int, dict[str, Any], bytes]] = [
    ("fixed_fields", 0, {"flag": True, "small": -2}, b"\x01\xfe"),
    (
        "fixed_fields",
        1,
        {"flag": False, "small": 5, "id": UUID, "ratio": 0.5, "port": 65535},
        b"\x00\x05" + UUID + pack(">d", 0.5) + b"\xff\xff",
    ),
    ("fixed_fields", 2, {}, b"\x00\xff" + bytes(16) + bytes(8) + b"\x00\x00" + b"\x00"),
    (
        "strings",
        0,
        {"count": 1, "name": "ab", "offset": 2, "rack": "r"},
        b"\x00\x00\x00\x01\x00\x02ab" + pack(">q", 2) + b"\x00\x01r",
    ),
    (
        "strings",
        1,
        {"count": 1, "name": "ä", "offset": 2},
        b"\x00\x00\x00\x01\x03\xc3\xa4" + pack(">q", 2) + b"\x00\x00",
    ),
    (
        "strings",
        1,
        {"name": "n" * 127, "rack": "r" * 300},
        bytes(4) + b"\x80\x01" + b"n" * 127 + bytes(8) + b"\xad\x02" + b"r" * 300 + b"\x00",
    ),
    (
        "strings",
        0,
        {"name": "n" * 128, "rack": "r" * 300},
        bytes(4) + b"\x00\x80" + b"n" * 128 + bytes(8) + b"\x01\x2c" + b"r" * 300,
    ),
    (
        "blobs",
        0,
        {"metadata": b"m", "token": None, "records": b"rr"},
        b"\x00\x00\x00\x01m\xff\xff\xff\xff\x00\x00\x00\x02rr",
    ),
    ("blobs", 1, {"metadata": b"", "token": b"t"}, b"\x01\x02t\x00\x00"),
    (
        "blobs",
        1,
        {"metadata": b"m" * 200, "token": b"", "records": b"r" * 20000},
        b"\xc9\x01" + b"m" * 200 + b"\x01" + b"\xa1\x9c\x01" + b"r" * 20000 + b"\x00",
    ),
    (
        "arrays",
        0,
        {"replicas": [1, -1], "names": ["a", ""], "topics": None},
        b"\x00\x00\x00\x02\x00\x00\x00\x01\xff\xff\xff\xff"
        b"\x00\x00\x00\x02\x00\x01a\x00\x00\xff\xff\xff\xff",
    ),
    ("arrays", 1, {"names": None, "topics": []}, b"\x01\x00\x01\x00"),
    (
        "arrays",
        1,
        {"replicas": list(range(200)), "names": ["x" * 130], "topics": []},
        b"\xc9\x01" + pack(">200i", *range(200)) + b"\x02\x83\x01" + b"x" * 130 + b"\x01\x00",
    ),
    (
        "arrays",
        0,
        {"replicas": list(range(200)), "names": ["x" * 130], "topics": []},
        pack(">i200i", 200, *range(200)) + pack(">ih", 1, 130) + b"x" * 130 + bytes(4),
    ),
    ("absent_fields", 0, {"always": 3, "may": 9, "old": "o"}, b"\x03\x00\x01o"),
    (
        "absent_fields",
        1,
        {"always": 3, "must": 4, "may": 5, "flag": False, "items": [1, 2]},
        b"\x03\x00\x00\x00\x04\x00\x00\x00\x05\x00\x00\x00\x00\x02\x01\x02",
    ),
    ("tagged_fields", 0, {"id": 7}, b"\x00\x00\x00\x07"),
    ("tagged_fields", 1, {"id": 7}, b"\x00\x00\x00\x07\x00"),
    (
        "tagged_fields",
        2,
        {"id": 7, "epoch": 1, "later": "x", "lists": [5]},
        b"\x00\x00\x00\x07\x03\x00\x04\x00\x00\x00\x01\x01\x02\x02x\x04\x05\x02\x00\x00\x00\x05",
    ),
    ("header_exception", 1, {"correlation_id": 7, "client_id": "ab"}, b"\0\0\0\x07\x00\x02ab"),
    ("header_exception", 2, {"correlation_id": 7, "client_id": None}, b"\0\0\0\x07\xff\xff\x00"),
    (
        "header_exception",
        2,
        {"correlation_id": 7, "client_id": "c" * 200},
        b"\0\0\0\x07\x00\xc8" + b"c" * 200 + b"\x00",
    ),
]


def class_of(name: str) -> type[Message]:
    found = getattr(import_feature(name), plan_feature(name).messages[0].spec.name)
    assert isinstance(found, type)
    assert issubclass(found, Message)
    return found


@pytest.mark.parametrize(("name", "version", "values", "data"), CASES)
def test_generated_functions_read_and_write_the_bytes(
    name: str, version: int, values: dict[str, Any], data: bytes
) -> None:
    message_class = class_of(name)
    message = message_class(**values)
    parts: list[Any] = []
    message_class._encoders[version](message, parts.append)
    assert b"".join(parts) == data
    decoded, end = message_class._decoders[version](b"?" + data, 1)
    assert end == len(data) + 1
    for field, value in values.items():
        if field not in ("may",):  # ignorable, and absent in the version of its case
            assert getattr(decoded, field) == value


def test_nested_arrays_of_structs_are_read_and_written() -> None:
    module = import_feature("arrays")
    partition = module.Partition(index=3, epoch=4)
    topic = module.Topic(name="t", partitions=[partition, partition])
    request = module.ArraysRequest(topics=[topic])
    data = b"\x01\x01\x02\x02t\x03" + b"\x00\x00\x00\x03\x00\x04\x00" * 2 + b"\x00\x00"
    assert request.encode(1) == data
    assert module.ArraysRequest.decode(data, 1) == (request, len(data))


def test_nullable_struct_has_a_marker_byte_in_front() -> None:
    module = import_feature("nullable_structs")
    response_class, cursor = module.NullableStructsResponse, module.Cursor
    null = response_class(second=cursor(topic_name="b"))
    present = response_class(first=cursor(topic_name="a"), second=cursor(topic_name="b"))
    for response, data in ((null, b"\xff\x02b\x00\x00"), (present, b"\x01\x02a\x00\x02b\x00\x00")):
        assert response.encode(0) == data
        assert response_class.decode(data, 0) == (response, len(data))


def test_tagged_structs_are_none_until_they_differ_from_their_default() -> None:
    module = import_feature("tagged_fields")
    request_class = module.TaggedFieldsRequest
    assert request_class().leader is None
    assert request_class(leader=module.Leader()).encode(2) == b"\x00\x00\x00\x00\x00"
    request = request_class(leader=module.Leader(leader_id=2), origin=module.Leader2(node_id=3))
    data = (
        bytes(4) + b"\x02" + b"\x02\x05\x00\x00\x00\x02\x00" + b"\x03\x06\x01\x00\x00\x00\x03\x00"
    )
    assert request.encode(2) == data
    assert request_class.decode(data, 2) == (request, len(data))


def test_unknown_tags_are_kept_beside_the_known() -> None:
    request_class = class_of("tagged_fields")
    data = b"\x00\x00\x00\x07\x02\x00\x04\x00\x00\x00\x01\x09\x02hi"
    request, end = request_class.decode(data, 1)
    assert end == len(data)
    assert getattr(request, "unknown_tagged_fields") == [(9, b"hi")]  # noqa: B009  # not typed


@pytest.mark.parametrize(
    ("name", "version", "values"),
    [
        ("absent_fields", 0, {"must": 4}),
        ("absent_fields", 0, {"flag": False}),
        ("absent_fields", 0, {"items": [1]}),
        ("absent_fields", 1, {"old": "o"}),
        ("strings", 0, {"rack": None}),
        ("fixed_fields", 0, {"port": 1}),
        ("fixed_fields", 2, {"unknown_tagged_fields": [(1, b"")]}),
        ("fixed_fields", 0, {"unknown_tagged_fields": [(1, b"")]}),
    ],
)
def test_what_a_version_cannot_carry_is_left_to_the_reference_codec(
    name: str, version: int, values: dict[str, Any]
) -> None:
    message_class = class_of(name)
    parts: list[Any] = []
    with pytest.raises(Unusual):
        message_class._encoders[version](message_class(**values), parts.append)


def test_versions_of_equal_layout_share_their_functions() -> None:
    text = (FEATURES / "strings.json").read_text().replace('"0-1"', '"0-3"')
    [plan] = plan_modules([(parse_message(text, "strings.json"), "strings.json")])
    [(_, decoders, encoders)] = plan.codecs
    assert decoders[1] == decoders[2] == decoders[3] != decoders[0]
    assert encoders[1] == encoders[2] == encoders[3] != encoders[0]


def test_plans_are_made_without_jinja2() -> None:
    program = (
        "import sys; sys.modules['jinja2'] = None; "
        "from codegen import plan, tables, diff, schema_import; print('planned')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "planned\n"
