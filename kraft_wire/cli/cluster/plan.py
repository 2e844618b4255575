"""The options of `cluster up`: checked, refused in one line, or applied to an existing cluster.

All requirements of a new cluster are checked before a file is created.
"""

from dataclasses import dataclass
from typing import Final

from kraft_wire.cli.cluster.certificates import check_can_certify
from kraft_wire.cli.cluster.files import CannotRun, ClusterFiles, shell_line
from kraft_wire.cli.cluster.network import missing
from kraft_wire.cli.cluster.ports import PORT_MAX, first_taken_port
from kraft_wire.cli.cluster.setup import ClusterPlan, apache_jars, make_cluster
from kraft_wire.cli.cluster.state import APACHE, BROKER, COMBINED, CONTROLLER, ClusterState
from kraft_wire.cli.format.plan import FormatRefused, feature_levels, quorum_kind
from kraft_wire.cli.known_keys import unknown_key
from kraft_wire.metadata.features import METADATA_VERSION, SCRAM_FROM

__all__ = ["UpOptions", "check_new", "found_or_made"]

_NODES: Final = 3
"""The default of each kind."""
_KEYS_OF_EACH: Final = frozenset(
    {
        *("process.roles", "node.id", "broker.id", "listeners", "log.dirs", "log.dir"),
        *("controller.listener.names", "controller.quorum.bootstrap.servers"),
    }
)


@dataclass(frozen=True, slots=True)
class UpOptions:
    """The options of `cluster up`; None for one that was not given."""

    controllers: int | None
    apache_controllers: int | None
    brokers: int | None
    apache_brokers: int | None
    overrides: tuple[str, ...]
    features: tuple[str, ...]
    has_network: bool
    jars: str | None
    nodes: int | None = None
    base_port: int | None = None
    is_secured: bool = False

    @property
    def brokers_count(self) -> int:
        """Brokers that are not controllers; 0 if only controllers are given."""
        if self.nodes is not None:
            return 0
        counts_controllers = (self.controllers, self.apache_controllers) != (None, None)
        default = 0 if counts_controllers else _NODES
        return default if self.brokers is None else self.brokers

    @property
    def controllers_count(self) -> int:
        """Controllers that are not brokers."""
        if self.nodes is not None:
            return 0
        return _NODES if self.controllers is None else self.controllers

    def check_kinds(self) -> None:
        """Refuse counts of combined nodes beside counts of the others. Errors: CannotRun."""
        given = {
            "--controllers": self.controllers,
            "--brokers": self.brokers,
            "--apache-controllers": self.apache_controllers,
            "--apache-brokers": self.apache_brokers,
        }
        for name, count in given.items():
            if self.nodes is not None and count is not None:
                raise CannotRun(f"give one of --nodes and {name}: --nodes counts combined nodes")


def check_new(files: ClusterFiles, options: UpOptions) -> None:
    """Refuse options of a new cluster before anything is written. Errors: CannotRun."""
    options.check_kinds()
    if not files.state_file.exists():
        _check_place(files)
        _plan(options)


def found_or_made(files: ClusterFiles, options: UpOptions) -> ClusterState:
    """Return the directory's cluster, or a new one. Errors: CannotRun."""
    state = files.load()
    if state is None:
        _check_place(files)
        return make_cluster(files, _plan(options))
    _check_same(files, state, options)
    return state


def _check_place(files: ClusterFiles) -> None:
    """Refuse a directory that a list of directories cannot hold: Kafka splits it at commas."""
    path = str(files.directory)
    if "," in path or any("\udc80" <= each <= "\udcff" for each in path):
        raise CannotRun(f"--dir {path!a}: a path in log.dirs must be text without commas")


def _plan(options: UpOptions) -> ClusterPlan:
    plan = ClusterPlan(
        controllers=options.controllers_count,
        apache_controllers=options.apache_controllers or 0,
        brokers=options.brokers_count,
        apache_brokers=options.apache_brokers or 0,
        combined=options.nodes or 0,
        base_port=options.base_port,
        overrides=dict(map(_override, options.overrides)),
        levels=_levels(options),
        has_network=options.has_network,
        is_secured=options.is_secured,
    )
    if plan.is_secured:
        _check_can_secure(plan)
    for kind, all_of_them, of_apache in (
        ("controllers", plan.controllers, plan.apache_controllers),
        ("brokers", plan.brokers, plan.apache_brokers),
    ):
        if of_apache > all_of_them:
            raise CannotRun(f"--apache-{kind} {of_apache}: there are only {all_of_them} {kind}")
    if plan.apache_controllers or plan.apache_brokers:
        apache_jars(options.jars)
    why = missing() if plan.has_network else None
    if why is not None:
        raise CannotRun(f"--netns: {why}")
    _check_ports(plan)
    return plan


def _check_can_secure(plan: ClusterPlan) -> None:
    check_can_certify()
    if plan.levels[METADATA_VERSION] < SCRAM_FROM:
        raise CannotRun("--secure needs the metadata.version of 3.5-IV2 or later")


def _check_ports(plan: ClusterPlan) -> None:
    if plan.base_port is None:
        return
    ports = range(plan.base_port, plan.base_port + plan.listeners_count)
    if ports[-1] > PORT_MAX:
        raise CannotRun(
            f"--base-port {plan.base_port}: {len(ports)} ports are needed, and the last one is "
            f"{PORT_MAX}"
        )
    taken = None if plan.has_network else first_taken_port(ports)
    if taken is not None:
        raise CannotRun(
            f"--base-port {plan.base_port}: port {taken} is in use; ports {ports[0]} to "
            f"{ports[-1]} are needed"
        )


def _levels(options: UpOptions) -> dict[str, int]:
    """Return the initial feature levels."""
    kind = quorum_kind(static_voters=False, standalone=False, joins=False, initial=True)
    try:
        return feature_levels(None, options.features, kind)
    except FormatRefused as refused:
        raise CannotRun(f"--feature: {refused}") from refused


def _check_same(files: ClusterFiles, state: ClusterState, options: UpOptions) -> None:
    """Refuse options that contradict an existing cluster."""
    nodes = state.nodes.values()
    combined = sum(each.role == COMBINED for each in nodes)
    counts = [
        count
        for kind in (CONTROLLER, BROKER)
        for count in (
            sum(each.role == kind for each in nodes),
            sum((each.role, each.make) == (kind, APACHE) for each in nodes),
        )
    ]
    asked = (
        options.controllers,
        options.apache_controllers,
        options.brokers,
        options.apache_brokers,
        options.nodes,
    )
    if any(ask not in (None, has) for ask, has in zip(asked, (*counts, combined), strict=True)):
        raise CannotRun(
            f"{files.directory} holds a cluster of {counts[0]} controllers, {counts[1]} of them "
            f"Apache's, and {counts[2]} brokers, {counts[3]} of them Apache's"
            + (f", and {combined} combined nodes" if combined else "")
            + f": `{shell_line(files, 'down', '--wipe')}` removes it, another --dir keeps it"
        )
    first = min(each.port for each in nodes)
    if options.base_port not in (None, first):
        raise CannotRun(
            f"--base-port is for a new cluster; the first port of the one in {files.directory} "
            f"is {first}"
        )
    for name, given in (("--override", options.overrides), ("--feature", options.features)):
        if given:
            raise CannotRun(
                f"{name} is for a new cluster; the files of this one are "
                f"{files.properties(1).parent}/node-N.properties"
            )
    if options.is_secured and not state.is_secured:
        raise CannotRun(
            f"--secure is for a new cluster; the listeners of {files.directory} are open: use "
            "another --dir"
        )
    if options.has_network and state.network is None:
        raise CannotRun(
            f"--netns is for a new cluster; the nodes of {files.directory} have addresses "
            "of this machine: use another --dir"
        )


def _override(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise CannotRun(f"--override {text!r} is not KEY=VALUE")
    key = key.strip()
    if key in _KEYS_OF_EACH:
        raise CannotRun(f"--override {key}: `up` sets it for each node")
    problem = unknown_key(key)
    if problem is not None:
        raise CannotRun(f"--override {text}: {problem}")
    return key, value.strip()
