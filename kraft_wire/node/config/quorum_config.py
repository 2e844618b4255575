"""The quorum's part of the configuration: this replica's identity, its listeners, its peers.

Kafka's keys (KIP-595, KIP-853): `controller.quorum.voters` is the static voter set,
`controller.quorum.bootstrap.servers` has the addresses of a dynamic quorum. An embedded node that
has neither key is a quorum of one.
"""

from dataclasses import replace

from kraft_wire.model import ZERO_UUID, ReplicaId, ReplicaKey, Uuid
from kraft_wire.node.config.node_config import NodeConfig
from kraft_wire.raft.config import RaftConfig
from kraft_wire.raft.timing import RaftTiming
from kraft_wire.raft.voters import Address, VersionRange, VoterNode, VoterSet
from kraft_wire.settings.node_settings import NodeSettings

__all__ = ["raft_config", "reachable", "static_voters"]


def raft_config(config: NodeConfig, cluster_id: str, directory_id: Uuid) -> RaftConfig:
    """Return the replica's part of the configuration."""
    return RaftConfig(
        ReplicaKey(ReplicaId(config.node_id), directory_id),
        cluster_id,
        _listener_name(config),
        _endpoints(config),
        tuple(Address(server.host, server.port) for server in config.bootstrap_servers),
        VersionRange(0, 1),
        is_controller=config.is_controller,
        joins_by_itself=config.settings.boolean("controller.quorum.auto.join.enable"),
        timing=_timing(config.settings),
    )


def static_voters(config: NodeConfig) -> VoterSet | None:
    """Return the static set, None if only bootstrap servers are configured."""
    name = _listener_name(config)
    if config.voters:
        return VoterSet.of(
            VoterNode(
                ReplicaKey(ReplicaId(voter.node_id), ZERO_UUID),
                {name: Address(voter.host, voter.port)},
            )
            for voter in config.voters
        )
    if config.bootstrap_servers:
        return None
    return VoterSet.of([VoterNode(ReplicaKey(ReplicaId(config.node_id), ZERO_UUID))])


def reachable(config: RaftConfig, voters: VoterSet) -> RaftConfig:
    """Return the configuration of a replica with addresses that the voters can reach, if needed.

    The only voter need not listen for others: an embedded node over the data of a quorum in which
    it is the last voter keeps its address in the voter set.
    """
    node = voters.nodes.get(config.key.id)
    if config.endpoints or node is None or len(voters) > 1:
        return config
    return replace(config, endpoints=node.endpoints)


def _endpoints(config: NodeConfig) -> dict[str, Address]:
    return {
        each.name.upper(): Address(each.advertised_host, each.advertised_port)
        for each in config.controller_listeners
    }


def _listener_name(config: NodeConfig) -> str:
    names = config.settings.strings("controller.listener.names")
    return names[0].upper() if names else "CONTROLLER"


def _timing(settings: NodeSettings) -> RaftTiming:
    def number(name: str) -> int:
        return settings.integer(f"controller.quorum.{name}")

    return RaftTiming(
        election_timeout_ms=number("election.timeout.ms"),
        fetch_timeout_ms=number("fetch.timeout.ms"),
        election_backoff_max_ms=number("election.backoff.max.ms"),
        request_timeout_ms=number("request.timeout.ms"),
        retry_backoff_ms=number("retry.backoff.ms"),
        fetch_max_bytes=number("fetch.max.bytes"),
        fetch_snapshot_max_bytes=number("fetch.snapshot.max.bytes"),
    )
