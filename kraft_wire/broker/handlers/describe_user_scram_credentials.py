"""DescribeUserScramCredentials, API key 50, version 0.

Behaviour:   returns the mechanisms and iterations of users' credentials, never the keys; an empty
             list of users means all
Versions:    v0 (KIP-554)
Left out:    nothing
"""

from collections import Counter

from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.metadata.metadata_reader import MetadataReader
from kraft_wire.wire.generated.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["handle"]


def handle(
    broker: MetadataReader, context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Describe users. Errors per user: DUPLICATE_RESOURCE (asked twice), RESOURCE_NOT_FOUND."""
    stored: dict[str, list[CredentialInfo]] = {}
    scram = broker.image.scram
    for name, mechanism in sorted(scram):
        info = CredentialInfo(mechanism=mechanism, iterations=scram[name, mechanism].iterations)
        stored.setdefault(name, []).append(info)
    asked = Counter(user.name for user in request.users or []) or Counter(stored.keys())
    results = [_result(name, count, stored.get(name)) for name, count in asked.items()]
    return DescribeUserScramCredentialsResponse(error_message="", results=results)


def _result(
    name: str, count: int, infos: list[CredentialInfo] | None
) -> DescribeUserScramCredentialsResult:
    if count > 1:
        return DescribeUserScramCredentialsResult(
            user=name,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message=(
                "Cannot describe SCRAM credentials for the same user twice in a single request: "
                f"{name}"
            ),
        )
    if infos is None:
        return DescribeUserScramCredentialsResult(
            user=name,
            error_code=ErrorCode.RESOURCE_NOT_FOUND,
            error_message=f"Attempt to describe a user credential that does not exist: {name}",
        )
    return DescribeUserScramCredentialsResult(user=name, error_message="", credential_infos=infos)
