"""AlterUserScramCredentials, API key 51, version 0.

Behaviour:   sets, changes or deletes one credential of each user per request, or refuses that user;
             the stored keys are derived from the salted password, which is not stored (RFC 5802)
Versions:    v0 (KIP-554)
Left out:    nothing
"""

from collections.abc import Mapping
from hashlib import new as new_hash
from hmac import digest as hmac_digest
from typing import Final

from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.controller.refusal import Refusal, check_room
from kraft_wire.metadata.features import SCRAM_FROM
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.wire.generated.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.remove_user_scram_credential_record import (
    RemoveUserScramCredentialRecord,
)
from kraft_wire.wire.generated.user_scram_credential_record import UserScramCredentialRecord

__all__ = ["handle", "refuse"]

_ALGORITHMS: Final[Mapping[int, str]] = {1: "sha256", 2: "sha512"}
_ITERATIONS_MIN: Final = 4_096
_ITERATIONS_MAX: Final = 16_384

_Change = ScramCredentialDeletion | ScramCredentialUpsertion


def handle(
    controller: Controller, context: ControllerContext, request: AlterUserScramCredentialsRequest
) -> ControllerResult:
    """Change credentials.

    Errors per user, first match wins: DUPLICATE_RESOURCE (a second change of one that was fine),
    UNSUPPORTED_VERSION (metadata.version), UNACCEPTABLE_CREDENTIAL (no name),
    UNSUPPORTED_SASL_MECHANISM, UNACCEPTABLE_CREDENTIAL (iterations), RESOURCE_NOT_FOUND,
    UNKNOWN_SERVER_ERROR (an empty salted password, of which no key can be made).
    """
    assert context.api_version == 0, context.api_version
    changes: list[_Change] = [*request.deletions, *request.upsertions]
    results: dict[str, AlterUserScramCredentialsResult] = {}
    records: dict[str, VersionedRecord] = {}
    for change in changes:
        before = results.get(change.name)
        if before is not None and before.error_code:
            continue
        result = results[change.name] = AlterUserScramCredentialsResult(
            user=change.name, error_message=None
        )
        try:
            if before is not None:
                words = "A user credential cannot be altered twice in the same request"
                raise Refusal(ErrorCode.DUPLICATE_RESOURCE, words)
            records[change.name] = _record(controller, change)
            check_room(len(records))
        except Refusal as refusal:
            records.pop(change.name, None)
            result.error_code, result.error_message = refusal.error, refusal.message
    assert len(records) <= len(results)
    response = AlterUserScramCredentialsResponse(results=list(results.values()))
    return ControllerResult(response, list(records.values()))


def refuse(
    request: AlterUserScramCredentialsRequest, error: ErrorCode, message: str | None
) -> AlterUserScramCredentialsResponse:
    """Return the answer that refuses the request as a whole, once per user, by name."""
    assert error is not ErrorCode.NONE
    changes: list[_Change] = [*request.deletions, *request.upsertions]
    users = {change.name for change in changes}
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(user=user, error_code=error, error_message=message)
            for user in sorted(users)
        ]
    )


def _record(controller: Controller, change: _Change) -> VersionedRecord:
    if controller.image.metadata_version < SCRAM_FROM:
        words = "The current metadata.version does not support SCRAM"
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION, words)
    if not change.name:
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in _ALGORITHMS:
        raise Refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, ScramCredentialUpsertion):
        return _stored(change)
    if (change.name, change.mechanism) not in controller.image.scram:
        words = "Attempt to delete a user credential that does not exist"
        raise Refusal(ErrorCode.RESOURCE_NOT_FOUND, words)
    assert change.name
    removal = RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    return VersionedRecord(removal)


def _stored(change: ScramCredentialUpsertion) -> VersionedRecord:
    """Return the record of a credential: two keys, neither of which reveals the password."""
    if change.iterations < _ITERATIONS_MIN:
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > _ITERATIONS_MAX:
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if not change.salted_password:
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    algorithm = _ALGORITHMS[change.mechanism]
    client_key = hmac_digest(change.salted_password, b"Client Key", algorithm)
    server_key = hmac_digest(change.salted_password, b"Server Key", algorithm)
    assert len(client_key) == len(server_key) >= 32, algorithm
    record = UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=bytes(change.salt),
        stored_key=new_hash(algorithm, client_key).digest(),
        server_key=server_key,
        iterations=change.iterations,
    )
    return VersionedRecord(record)
