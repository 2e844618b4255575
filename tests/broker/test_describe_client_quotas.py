"""DescribeClientQuotas: what a filter must not say."""

import pytest

from kraft_wire.broker.handlers.describe_client_quotas import handle
from kraft_wire.wire.generated.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.small_broker import context, image_of, small_broker

EXACT, DEFAULT, SPECIFIED = range(3)


@pytest.mark.parametrize(
    ("components", "words"),
    [
        ([("user", EXACT, None)], "MATCH_TYPE_EXACT, but set match string to null"),
        ([("user", DEFAULT, "a")], "MATCH_TYPE_DEFAULT, but also specified a match string"),
        ([("user", SPECIFIED, "a")], "MATCH_TYPE_SPECIFIED, but also specified a match string"),
        ([("user", 3, None)], "Unknown match type 3"),
        ([("", EXACT, "a")], "Invalid empty entity type"),
        ([("user", EXACT, "a"), ("user", DEFAULT, None)], "cannot appear more than once"),
        ([("ip", EXACT, "1.2.3.4"), ("user", EXACT, "a")], "IP filter component should not"),
        ([("user", EXACT, "a"), ("client-id", DEFAULT, None)], ""),
        ([("ip", SPECIFIED, None)], ""),
        ([], ""),
    ],
)
def test_filter_that_contradicts_itself_is_refused(
    components: list[tuple[str, int, str | None]], words: str
) -> None:
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=kind, match_type=how, match=match)
            for kind, how, match in components
        ]
    )
    response = handle(small_broker(image_of({}, [])), context(1), request)
    expected = ErrorCode.INVALID_REQUEST if words else ErrorCode.NONE
    assert response.error_code == expected
    assert words in (response.error_message or "")
    assert (response.entries is None) == bool(words)


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ([("", 3, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, "a"), ("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([("planet", EXACT, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([("ip", EXACT, None), ("user", EXACT, "a")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_errors_in_order(components: list[tuple[str, int, str | None]], error: ErrorCode) -> None:
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=kind, match_type=how, match=match)
            for kind, how, match in components
        ]
    )
    response = handle(small_broker(image_of({}, [])), context(1), request)
    assert response.error_code == error
