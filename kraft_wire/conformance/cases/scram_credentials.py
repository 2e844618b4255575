"""SCRAM credentials: AlterUserScramCredentials, API key 51, and the description, 50 (KIP-554)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraft_wire.wire.generated.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_SOURCE: Final = "org.apache.kafka.controller.ScramControlManager, alterCredentials"
_SHA_256, _SHA_512, _NO_MECHANISM = 1, 2, 9
_SALT, _PASSWORD = b"salt of the conformance suite", b"p" * 32
_CODE: Final = "results[0].error_code"


def _upsertion(user: str, iterations: int = 4096, mechanism: int = _SHA_256) -> object:
    return ScramCredentialUpsertion(
        name=user,
        mechanism=mechanism,
        iterations=iterations,
        salt=_SALT,
        salted_password=_PASSWORD,
    )


def _alter(broker: Subject, version: int, *changes: object) -> AlterUserScramCredentialsResponse:
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in changes if isinstance(each, ScramCredentialDeletion)],
        upsertions=[each for each in changes if isinstance(each, ScramCredentialUpsertion)],
    )
    return broker.ask(request, version, AlterUserScramCredentialsResponse)


def _described(broker: Subject, *users: str) -> DescribeUserScramCredentialsResponse:
    request = DescribeUserScramCredentialsRequest(users=[UserName(name=each) for each in users])
    return broker.ask(request, 0, DescribeUserScramCredentialsResponse)


def _refused(broker: Subject, version: int, code: ErrorCode, *changes: object) -> None:
    expect.error(_alter(broker, version, *changes), _CODE, code)


@case("AlterUserScramCredentials", "KIP-554")
def credential_of_a_user(broker: Subject, version: int) -> None:
    """A credential is set, described by mechanism and iterations, and deleted.

    Set two credentials of a user, describe the user, delete both.
    """
    user = broker.name("user")
    mechanisms = (_SHA_256, _SHA_512)
    for mechanism in mechanisms:
        answer = _alter(broker, version, _upsertion(user, 8192, mechanism))
        expect.error(answer, _CODE, ErrorCode.NONE)
        expect.equal(answer, "results[0].user", user)
    request = DescribeUserScramCredentialsRequest(users=[UserName(name=user)])
    for _ in broker.attempts("two credentials"):
        shown = broker.prepare(request, DescribeUserScramCredentialsResponse)
        if len(shown.results[0].credential_infos) == len(mechanisms):
            break
    infos = _described(broker, user).results[0].credential_infos
    found = sorted((each.mechanism, each.iterations) for each in infos)
    for mechanism in mechanisms:
        change = ScramCredentialDeletion(name=user, mechanism=mechanism)
        expect.error(_alter(broker, version, change), _CODE, ErrorCode.NONE)
    wanted = [(_SHA_256, 8192), (_SHA_512, 8192)]
    expect.true(found == wanted, str(wanted), found)


@case("AlterUserScramCredentials", _SOURCE)
def nothing_to_delete(broker: Subject, version: int) -> None:
    """A credential that does not exist is RESOURCE_NOT_FOUND.

    Delete a credential of a new user.
    """
    change = ScramCredentialDeletion(name=broker.name("user"), mechanism=_SHA_256)
    _refused(broker, version, ErrorCode.RESOURCE_NOT_FOUND, change)


@case("AlterUserScramCredentials", _SOURCE)
def too_few_iterations(broker: Subject, version: int) -> None:
    """Less than 4,096 iterations and more than 16,384 are UNACCEPTABLE_CREDENTIAL.

    Set credentials of 4,095 and of 16,385 iterations.
    """
    for iterations in (4095, 16385):
        change = _upsertion(broker.name("user"), iterations)
        _refused(broker, version, ErrorCode.UNACCEPTABLE_CREDENTIAL, change)


@case("AlterUserScramCredentials", _SOURCE)
def unknown_mechanism(broker: Subject, version: int) -> None:
    """An unknown mechanism is UNSUPPORTED_SASL_MECHANISM.

    Set and delete a credential of mechanism 9.
    """
    user = broker.name("user")
    code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
    _refused(broker, version, code, _upsertion(user, mechanism=_NO_MECHANISM))
    change = ScramCredentialDeletion(name=user, mechanism=_NO_MECHANISM)
    _refused(broker, version, code, change)


@case("AlterUserScramCredentials", _SOURCE)
def no_user(broker: Subject, version: int) -> None:
    """An empty name is UNACCEPTABLE_CREDENTIAL.

    Set and delete a credential of the user "".
    """
    code = ErrorCode.UNACCEPTABLE_CREDENTIAL
    _refused(broker, version, code, _upsertion(""))
    _refused(broker, version, code, ScramCredentialDeletion(name="", mechanism=_SHA_256))


@case("AlterUserScramCredentials", _SOURCE)
def same_user_twice(broker: Subject, version: int) -> None:
    """A second change of a credential in one request is DUPLICATE_RESOURCE.

    Set a credential twice in one request.
    """
    user = broker.name("user")
    changes = (_upsertion(user), _upsertion(user))
    _refused(broker, version, ErrorCode.DUPLICATE_RESOURCE, *changes)


@case("DescribeUserScramCredentials", "KIP-554")
def unknown_user(broker: Subject, version: int) -> None:
    """A user without credentials is RESOURCE_NOT_FOUND, a repeated user DUPLICATE_RESOURCE.

    Describe a new name, once and twice.
    """
    user = broker.name("user")
    expect.error(_described(broker, user), _CODE, ErrorCode.RESOURCE_NOT_FOUND)
    expect.error(_described(broker, user, user), _CODE, ErrorCode.DUPLICATE_RESOURCE)


@case("DescribeUserScramCredentials", "KIP-554")
def same_user_twice_to_describe(broker: Subject, version: int) -> None:
    """A user that is named twice is refused with DUPLICATE_RESOURCE, once.

    Describe a user twice in one request.
    """
    user = broker.name("user")
    request = DescribeUserScramCredentialsRequest(users=[UserName(name=user)] * 2)
    answer = broker.ask(request, version, DescribeUserScramCredentialsResponse)
    expect.true(len(answer.results) == 1, "one result", len(answer.results), "results")
    expect.error(answer, _CODE, ErrorCode.DUPLICATE_RESOURCE)


@case("AlterUserScramCredentials", _SOURCE)
def iterations_at_the_limits(broker: Subject, version: int) -> None:
    """4,096 and 16,384 iterations are accepted.

    Set credentials of both numbers, one of each mechanism, and delete them.
    """
    user, limits = broker.name("user"), ((_SHA_256, 4_096), (_SHA_512, 16_384))
    for mechanism, iterations in limits:
        answer = _alter(broker, version, _upsertion(user, iterations, mechanism))
        expect.error(answer, _CODE, ErrorCode.NONE)
        change = ScramCredentialDeletion(name=user, mechanism=mechanism)
        expect.error(_alter(broker, version, change), _CODE, ErrorCode.NONE)


@case("AlterUserScramCredentials", _SOURCE)
def empty_password(broker: Subject, version: int) -> None:
    """A credential without a salted password is refused; 4.3.1 answers UNKNOWN_SERVER_ERROR.

    Set a credential with an empty salted password.
    """
    change = _upsertion(broker.name("user"))
    assert isinstance(change, ScramCredentialUpsertion)
    change.salted_password = b""
    expect.internal_error(_alter(broker, version, change), _CODE)
