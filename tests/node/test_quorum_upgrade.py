"""kraft.version through a node's own door (KIP-853): the replica raises it, everybody obeys it."""

from kraft_wire.raft.roles import Leader
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.node.quorum import Answer, NodeQuorum
from tests.node.test_three_controllers import committed

UPGRADE = 1


def upgraded(quorum: NodeQuorum, level: int, *, validate_only: bool = False) -> Answer:
    """Ask whoever leads for a level, and wait for the answer."""
    update = FeatureUpdateKey(
        feature="kraft.version", max_version_level=level, upgrade_type=UPGRADE
    )
    request = UpdateFeaturesRequest(
        timeout_ms=10_000, feature_updates=[update], validate_only=validate_only
    )
    answer = quorum.ask(quorum.elect(), request)
    quorum.until(lambda: answer.response is not None)
    return answer


def has_heard_all(quorum: NodeQuorum) -> bool:
    """Tell whether both others have told the leader what they know."""
    role = quorum.members[quorum.elect()].running.raft.replica.quorum.role
    return isinstance(role, Leader) and len(role.reported_nodes) == len(quorum.voters) - 1


def levels(quorum: NodeQuorum) -> list[int]:
    """What each running node's replica goes by, once they are level."""
    quorum.level()
    replicas = [member.running.raft.replica for member in quorum.members.values()]
    return [int(replica.quorum.voters.kraft_version) for replica in replicas]


def test_upgrade_is_answered_once_it_is_committed_and_every_node_obeys_it() -> None:
    quorum = NodeQuorum()
    committed(quorum, 1_000)
    quorum.until(lambda: has_heard_all(quorum))
    assert upgraded(quorum, 1, validate_only=True).response.error_code == ErrorCode.NONE
    assert levels(quorum) == [0, 0, 0]
    assert upgraded(quorum, 1).response.error_code == ErrorCode.NONE
    assert levels(quorum) == [1, 1, 1]
    committed(quorum, 1_001)


def test_level_that_nobody_knows_is_refused_and_changes_nothing() -> None:
    quorum = NodeQuorum()
    committed(quorum, 1_000)
    assert upgraded(quorum, 9).response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert levels(quorum) == [0, 0, 0]
