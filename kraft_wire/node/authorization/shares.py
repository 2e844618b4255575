"""The guard of ShareFetch and ShareAcknowledge: the group; their handlers ask about each topic."""

from typing import cast

from kraft_wire.node.authorization.asker import Asked, Passed, Verdict
from kraft_wire.wire.generated.share_acknowledge import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from kraft_wire.wire.generated.share_fetch import ShareFetchRequest, ShareFetchResponse

__all__ = ["share_group"]


def share_group(asked: Asked) -> Verdict:
    """Refuse a request about a group that the principal may not read.

    As in Kafka, the refusal has no message, and a request without a group is refused for that.
    """
    request = cast("ShareFetchRequest | ShareAcknowledgeRequest", asked.request)
    read, _ = asked.needs
    if request.group_id is None or asked.asker.meets(read, request.group_id):
        return Passed(request)
    is_fetch = isinstance(request, ShareFetchRequest)
    answer = ShareFetchResponse if is_fetch else ShareAcknowledgeResponse
    return answer(error_code=read.error)
