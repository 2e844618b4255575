package judge.cluster;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.TopicListing;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.apache.kafka.test.TestUtils;

/** A cluster of kraft-wire processes for one of Apache's own tests, set up as its annotation asks. */
public final class WireCluster implements ClusterInstance {
    private static final long WAIT_MS = 60_000;
    static final int FIRST_CONTROLLER = 3000;

    private final ClusterConfig config;
    private final boolean isCombined;
    private final SortedSet<Integer> brokerIds = new TreeSet<>();
    private final SortedSet<Integer> controllerIds = new TreeSet<>();
    private final SortedMap<Integer, WireNode> nodes = new TreeMap<>();
    private final Ports ports = new Ports();
    private final String clusterId = Uuid.randomUuid().toString();
    private final List<Admin> made = new CopyOnWriteArrayList<>();
    private Path home;
    private boolean isStarted;
    private boolean isStopped;

    public WireCluster(ClusterConfig config, boolean isCombined) {
        this.config = ClusterConfig.builder(config)
                .setMetadataVersion(NodeSettings.released(config.metadataVersion()))
                .build();
        this.isCombined = isCombined;
        for (int id = 0; id < config.numBrokers(); id++) {
            brokerIds.add(id);
        }
        for (int id = 0; id < config.numControllers(); id++) {
            controllerIds.add(isCombined ? id : FIRST_CONTROLLER + id);
        }
    }

    private void format() throws IOException, InterruptedException {
        home = Files.createTempDirectory("wire-cluster-");
        NodeSettings settings = new NodeSettings(config, brokerIds, controllerIds, ports, clusterId, home);
        SortedSet<Integer> ids = new TreeSet<>(brokerIds);
        ids.addAll(controllerIds);
        for (int id : ids) {
            nodes.put(id, new WireNode(id, home.resolve("node-" + id), settings.of(id)));
        }
        for (WireNode node : nodes.values()) {
            node.format(settings.formatOptions(node.id));
        }
        for (WireNode node : nodes.values()) {
            node.waitUntilFormatted();
        }
    }

    // Life.

    @Override
    public void start() {
        if (isStarted) {
            return;
        }
        try {
            format();
            isStarted = true;
            for (WireNode node : nodes.values()) {
                node.start();
            }
            for (WireNode node : nodes.values()) {
                node.waitUntilReady();
            }
            waitForReadyBrokers();
        } catch (IOException | InterruptedException problem) {
            throw new IllegalStateException(problem);
        }
    }

    @Override
    public void stop() {
        if (isStopped) {
            return;
        }
        isStopped = true;
        made.forEach(each -> each.close(Duration.ZERO));
        try {
            for (WireNode node : nodes.values()) {
                node.kill();
            }
            if (home != null) {
                Utils.delete(home.toFile());
            }
        } catch (IOException | InterruptedException problem) {
            throw new IllegalStateException(problem);
        }
    }

    @Override
    public boolean started() {
        return isStarted;
    }

    @Override
    public boolean stopped() {
        return isStopped;
    }

    @Override
    public void shutdownBroker(int id) {
        if (controllerIds.contains(id)) {
            throw Insides.reached("the broker alone of a node that is a controller, too");
        }
        try {
            broker(id).stop();
            broker(id).waitUntilStopped();
        } catch (InterruptedException problem) {
            throw new IllegalStateException(problem);
        }
    }

    @Override
    public void startBroker(int id) {
        try {
            broker(id).start();
            broker(id).waitUntilReady();
        } catch (IOException problem) {
            throw new UncheckedIOException(problem);
        } catch (InterruptedException problem) {
            throw new IllegalStateException(problem);
        }
    }

    private WireNode broker(int id) {
        return Optional.ofNullable(brokerIds.contains(id) ? nodes.get(id) : null)
                .orElseThrow(() -> new IllegalArgumentException("Unknown brokerId " + id));
    }

    // What it is.

    @Override
    public Type type() {
        return isCombined ? Type.CO_KRAFT : Type.KRAFT;
    }

    @Override
    public ClusterConfig config() {
        return config;
    }

    @Override
    public String clusterId() {
        return clusterId;
    }

    @Override
    public ListenerName clientListener() {
        return config.brokerListenerName();
    }

    @Override
    public ListenerName controllerListenerName() {
        return config.controllerListenerName();
    }

    @Override
    public Set<Integer> controllerIds() {
        return controllerIds;
    }

    @Override
    public Set<Integer> brokerIds() {
        return brokerIds;
    }

    int port(WireNode node) {
        return ports.of(node.id, "clients");
    }

    @Override
    public String bootstrapServers() {
        return ports.addresses(brokerIds, "clients");
    }

    @Override
    public String bootstrapControllers() {
        return ports.addresses(controllerIds, "quorum");
    }

    @Override
    public List<Integer> brokerBoundPorts() {
        return brokerIds.stream().map(id -> ports.of(id, "clients")).toList();
    }

    @Override
    public List<Integer> controllerBoundPorts() {
        return controllerIds.stream().map(id -> ports.of(id, "quorum")).toList();
    }

    Map<String, Uuid> topicIds() throws ExecutionException, InterruptedException {
        try (Admin admin = admin()) {
            return admin.listTopics(new ListTopicsOptions().listInternal(true)).listings().get().stream()
                    .collect(Collectors.toMap(TopicListing::name, TopicListing::topicId));
        }
    }

    /** Closed at the end at the latest: a test that was ended has not closed it. */
    @Override
    public Admin admin(Map<String, Object> configs, boolean usingBootstrapControllers) {
        Admin admin = ClusterInstance.super.admin(configs, usingBootstrapControllers);
        made.add(admin);
        return admin;
    }

    @Override
    public Map<Integer, KafkaBroker> brokers() {
        Map<Integer, KafkaBroker> all = new TreeMap<>();
        brokerIds.forEach(id -> all.put(id, Insides.broker(this, nodes.get(id))));
        return all;
    }

    @Override
    public Map<Integer, ControllerServer> controllers() {
        return Insides.byId(controllerIds, id -> Insides.controller(this, nodes.get(id)));
    }

    @Override
    public List<Authorizer> authorizers() {
        throw Insides.reached("an authorizer");
    }

    @Override
    public Optional<FaultHandlerException> firstFatalException() {
        return Optional.empty();
    }

    @Override
    public Optional<FaultHandlerException> firstNonFatalException() {
        return Optional.empty();
    }

    @Override
    public Set<GroupProtocol> supportedGroupProtocols() {
        short level = config.features().getOrDefault(
                Feature.GROUP_VERSION, Feature.GROUP_VERSION.defaultLevel(config.metadataVersion()));
        return level > 0 ? Set.of(GroupProtocol.CLASSIC, GroupProtocol.CONSUMER) : Set.of(GroupProtocol.CLASSIC);
    }

    // Waiting: as a client sees it, of each broker that runs.

    private List<Admin> admins() {
        return running().map(node -> admin(Map.of("bootstrap.servers", "localhost:" + port(node)))).toList();
    }

    private Stream<WireNode> running() {
        return brokerIds.stream().map(nodes::get).filter(WireNode::isRunning);
    }

    private interface Seen {
        boolean by(Admin admin) throws ExecutionException, InterruptedException;
    }

    private void waitUntil(String what, Seen seen) throws InterruptedException {
        List<Admin> admins = admins();
        try {
            for (Admin each : admins) {
                TestUtils.waitForCondition(() -> {
                    try {
                        return seen.by(each);
                    } catch (ExecutionException problem) {
                        return false;
                    }
                }, WAIT_MS, what);
            }
        } finally {
            admins.forEach(Admin::close);
        }
    }

    @Override
    public void waitForReadyBrokers() throws InterruptedException {
        waitUntil("not all brokers are there", admin -> {
            return admin.describeCluster().nodes().get().size() == running().count();
        });
    }

    @Override
    public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
        if (partitions <= 0) {
            throw new IllegalArgumentException("Partition count must be > 0, but was " + partitions);
        }
        waitUntil(topic + " is not known everywhere", admin -> {
            return described(admin, topic).partitions().size() == partitions;
        });
    }

    @Override
    public void waitTopicDeletion(String topic) throws InterruptedException {
        waitUntil(topic + " is still known", admin -> !admin.listTopics().names().get().contains(topic));
    }

    private static TopicDescription described(Admin admin, String topic) throws ExecutionException, InterruptedException {
        return admin.describeTopics(List.of(topic), new DescribeTopicsOptions().timeoutMs(5000))
                .topicNameValues().get(topic).get();
    }

    /** Brokers that run have what the controller has once their heartbeats say so; a second is enough. */
    @Override
    public void ensureConsistentMetadata(Collection<KafkaBroker> all, Collection<ControllerServer> none) {
        settle();
    }

    @Override
    public void ensureConsistentMetadata() {
        settle();
    }

    private static void settle() {
        try {
            Thread.sleep(1000);
        } catch (InterruptedException problem) {
            throw new IllegalStateException(problem);
        }
    }

    @Override
    public void waitAcls(AclBindingFilter filter, Collection<AccessControlEntry> entries) throws InterruptedException {
        waitUntil("not the expected ACLs: " + entries, admin -> {
            Set<AccessControlEntry> found = new HashSet<>();
            admin.describeAcls(filter).values().get().forEach(each -> found.add(each.entry()));
            return found.equals(new HashSet<>(entries));
        });
    }
}
