"""What may be asked of min.insync.replicas while the cluster keeps eligible leader replicas.

The words are those of Apache's ConfigurationControlManager (KIP-966).
"""

import pytest

from kraft_wire.metadata.features import ELR_VERSION
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kraft_wire.wire.generated.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from tests.controller.broker_cluster import BrokerCluster

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
SET, DELETE = 0, 1
SAFE_DOWNGRADE = 2
OF_ONE_BROKER = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
OF_THE_CLUSTER = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."


def asked(
    cluster: BrokerCluster, resource_type: int, name: str, operation: int, key: str
) -> tuple[int, str | None]:
    change = AlterableConfig(
        name=key, config_operation=operation, value="1" if operation == SET else None
    )
    resource = AlterConfigsResource(
        resource_type=resource_type, resource_name=name, configs=[change]
    )
    answer = cluster.request(IncrementalAlterConfigsRequest(resources=[resource]))
    assert isinstance(answer, IncrementalAlterConfigsResponse)
    (row,) = answer.responses
    return row.error_code, row.error_message


@pytest.mark.parametrize("operation", [SET, DELETE])
def test_one_broker_has_no_min_isr_of_its_own(operation: int) -> None:
    cluster = BrokerCluster([2], keeps_elr=True)
    refused = (ErrorCode.INVALID_CONFIG, OF_ONE_BROKER)
    assert asked(cluster, BROKER_RESOURCE, "2", operation, "min.insync.replicas") == refused


def test_the_clusters_min_isr_is_changed_but_not_removed() -> None:
    cluster = BrokerCluster([2], keeps_elr=True)
    refused = (ErrorCode.INVALID_CONFIG, OF_THE_CLUSTER)
    assert asked(cluster, BROKER_RESOURCE, "", DELETE, "min.insync.replicas") == refused
    assert asked(cluster, BROKER_RESOURCE, "", SET, "min.insync.replicas")[0] == ErrorCode.NONE


def test_other_keys_of_one_broker_are_free() -> None:
    cluster = BrokerCluster([2], keeps_elr=True)
    assert asked(cluster, BROKER_RESOURCE, "2", SET, "message.max.bytes")[0] == ErrorCode.NONE


@pytest.mark.parametrize("operation", [SET, DELETE])
@pytest.mark.parametrize("name", ["2", ""])
def test_without_elr_it_is_a_setting_like_others(name: str, operation: int) -> None:
    cluster = BrokerCluster([2])
    answer = asked(cluster, BROKER_RESOURCE, name, operation, "min.insync.replicas")
    assert answer[0] == ErrorCode.NONE


def test_a_topics_own_value_is_free_while_elr_is_kept() -> None:
    cluster = BrokerCluster([2], keeps_elr=True)
    cluster.create("t", [2])
    for operation in (SET, DELETE):
        answer = asked(cluster, TOPIC_RESOURCE, "t", operation, "min.insync.replicas")
        assert answer[0] == ErrorCode.NONE


def test_end_of_elr_makes_no_min_isr_explicit() -> None:
    """`FeatureControlManager.updateFeatures` of 4.3.1: only a level above 0 does."""
    cluster = BrokerCluster([2], keeps_elr=True)
    update = FeatureUpdateKey(feature=ELR_VERSION, max_version_level=0, upgrade_type=SAFE_DOWNGRADE)
    answer = cluster.request(UpdateFeaturesRequest(feature_updates=[update]))
    assert isinstance(answer, UpdateFeaturesResponse)
    assert answer.error_code == ErrorCode.NONE, answer
    assert ELR_VERSION not in cluster.loader.image.finalized_features
    assert cluster.loader.image.config(BROKER_RESOURCE, "") == {}
