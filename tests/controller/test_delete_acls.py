"""DeleteAcls: how many entries one change may remove."""

from kraft_wire.controller.requests import decide
from kraft_wire.metadata.acl_rules import AUTHORIZER_KEY, STANDARD_AUTHORIZER
from kraft_wire.metadata.image import AclImage
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.controller.cluster import Context, OneNodeCluster


def test_more_entries_than_one_change_may_remove_are_refused() -> None:
    cluster = OneNodeCluster({AUTHORIZER_KEY: STANDARD_AUTHORIZER})
    image = cluster.loader.image
    acl = AclImage(2, "t", 3, "User:a", "*", 3, 3)
    crowd = {Uuid(number.to_bytes(16)): acl for number in range(10_001)}
    object.__setattr__(image, "acls", crowd)
    every = DeleteAclsFilter(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    cluster.controller.renounce(image)
    cluster.controller.become_active(
        image, leader_epoch=2, in_transaction=False, bootstrap=(), now_ms=0
    )
    result = decide(cluster.controller, Context(3), DeleteAclsRequest(filters=[every]))
    assert result.records == ()
    assert result.response.filter_results[0].error_code == ErrorCode.INVALID_REQUEST
    crowd.popitem()
    result = decide(cluster.controller, Context(3), DeleteAclsRequest(filters=[every]))
    assert len(result.records) == 10_000
    result = decide(cluster.controller, Context(3), DeleteAclsRequest(filters=[every, every]))
    assert result.records == (), "AclControlManager counts what an earlier filter has matched"
    words = "Cannot remove more than 10000 acls in a single delete operation."
    assert [each.error_message for each in result.response.filter_results] == [words] * 2


def test_errors_in_order() -> None:
    """The filter has an operation that does not exist."""
    wrong = DeleteAclsFilter(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=99,
        permission_type=1,
    )

    def error(settings: dict[str, str]) -> int:
        response = OneNodeCluster(settings).ask(DeleteAclsRequest(filters=[wrong]), 3)
        assert isinstance(response, DeleteAclsResponse)
        return response.filter_results[0].error_code

    assert error({}) == ErrorCode.SECURITY_DISABLED
    assert error({AUTHORIZER_KEY: STANDARD_AUTHORIZER}) == ErrorCode.INVALID_REQUEST
