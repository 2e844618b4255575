package judge.cluster;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;

/** How the nodes of a cluster are set up and formatted, from what a test asks for. */
final class NodeSettings {
    /** Settings that name a class, for which no node of ours has a counterpart. */
    private static final List<String> CLASSES = List.of(
            "alter.config.policy.class.name",
            "client.quota.callback.class",
            "config.providers",
            "create.topic.policy.class.name",
            "metric.reporters",
            "principal.builder.class");

    private final ClusterConfig config;
    private final Set<Integer> brokerIds;
    private final Set<Integer> controllerIds;
    private final Ports ports;
    private final String clusterId;
    private final Path home;

    NodeSettings(
            ClusterConfig config,
            Set<Integer> brokerIds,
            Set<Integer> controllerIds,
            Ports ports,
            String clusterId,
            Path home) {
        this.config = config;
        this.brokerIds = brokerIds;
        this.controllerIds = controllerIds;
        this.ports = ports;
        this.clusterId = clusterId;
        this.home = home;
    }

    /** What `kraft-wire format` gets. */
    List<String> formatOptions(int id) {
        List<String> options = new ArrayList<>(List.of("-t", clusterId));
        MetadataVersion version = config.metadataVersion();
        options.addAll(List.of("--feature", "metadata.version=" + version.featureLevel()));
        if (config.standalone()) {
            options.add(id == WireCluster.FIRST_CONTROLLER ? "--standalone" : "--no-initial-controllers");
        }
        for (Feature feature : Feature.PRODUCTION_FEATURES) {
            if (feature == Feature.KRAFT_VERSION && !config.standalone()) {
                continue;  // a static quorum has 0
            }
            short level = config.features().getOrDefault(feature, feature.defaultLevel(version));
            options.addAll(List.of("--feature", feature.featureName() + "=" + level));
        }
        return options;
    }

    /** The tests ask for the version that comes next unless they say otherwise; no release has it. */
    static MetadataVersion released(MetadataVersion wanted) {
        return wanted.isAtLeast(MetadataVersion.LATEST_PRODUCTION) ? MetadataVersion.LATEST_PRODUCTION : wanted;
    }

    /** The properties of a node. */
    Map<String, String> of(int id) {
        boolean isBroker = brokerIds.contains(id);
        boolean isController = controllerIds.contains(id);
        String clients = config.brokerListenerName().value();
        String quorum = config.controllerListenerName().value();
        Map<String, String> settings = new LinkedHashMap<>(config.serverProperties());
        settings.put("node.id", Integer.toString(id));
        settings.put("process.roles", String.join(",", roles(isBroker, isController)));
        settings.put("log.dirs", logDirs(Path.of("node-" + id)));
        settings.putIfAbsent("listener.security.protocol.map", clients + ":" + config.brokerSecurityProtocol()
                + "," + quorum + ":" + config.controllerSecurityProtocol());
        settings.putIfAbsent("listeners", listeners(id, isBroker, isController));
        settings.putIfAbsent("inter.broker.listener.name", clients);
        settings.putIfAbsent("controller.listener.names", quorum);
        if (config.standalone()) {
            settings.put("controller.quorum.bootstrap.servers", ports.addresses(controllerIds, "quorum"));
        } else {
            settings.put("controller.quorum.voters", voters());
        }
        if ("".equals(settings.get("group.share.persister.class.name"))) {
            // Apache's nodes keep no state then; ours always do, in a topic.
            settings.putIfAbsent("share.coordinator.state.topic.replication.factor", "1");
        }
        if (isBroker && isSasl(config.brokerSecurityProtocol())
                || isController && isSasl(config.controllerSecurityProtocol())) {
            secure(settings);
        }
        settings.putIfAbsent("log.cleaner.dedupe.buffer.size", "2097152");  // as Apache's kit has it
        settings.putAll(config.perServerOverrideProperties().getOrDefault(id, Map.of()));
        for (String key : CLASSES) {
            if (!settings.getOrDefault(key, "").isEmpty()) {
                throw Insides.aborted("a class that a setting names: " + settings.get(key));
            }
        }
        return settings;
    }

    private static List<String> roles(boolean isBroker, boolean isController) {
        List<String> roles = new ArrayList<>();
        if (isBroker) {
            roles.add("broker");
        }
        if (isController) {
            roles.add("controller");
        }
        return roles;
    }

    private String logDirs(Path data) {
        List<String> all = new ArrayList<>();
        for (int disk = 0; disk < config.numDisksPerBroker(); disk++) {
            all.add(home.resolve(data).resolve("data" + disk).toString());
        }
        return String.join(",", all);
    }

    private String listeners(int id, boolean isBroker, boolean isController) {
        List<String> all = new ArrayList<>();
        if (isBroker) {
            all.add(config.brokerListenerName().value() + "://localhost:" + ports.of(id, "clients"));
        }
        if (isController) {
            all.add(config.controllerListenerName().value() + "://localhost:" + ports.of(id, "quorum"));
        }
        return String.join(",", all);
    }

    private String voters() {
        return controllerIds.stream()
                .map(id -> id + "@localhost:" + ports.of(id, "quorum"))
                .collect(Collectors.joining(","));
    }

    private static boolean isSasl(SecurityProtocol protocol) {
        return protocol == SecurityProtocol.SASL_PLAINTEXT;
    }

    /** What Apache's own test kit sets for a node with SASL, with the logins that its tests use. */
    private void secure(Map<String, String> settings) {
        settings.putIfAbsent("sasl.enabled.mechanisms", "PLAIN");
        settings.putIfAbsent("sasl.mechanism.inter.broker.protocol", "PLAIN");
        settings.putIfAbsent("sasl.mechanism.controller.protocol", "PLAIN");
        settings.putIfAbsent("authorizer.class.name", StandardAuthorizer.class.getName());
        settings.putIfAbsent("allow.everyone.if.no.acl.found", "false");
        settings.putIfAbsent("super.users", "User:plain-admin");
        String login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
                + " username=\"plain-admin\" password=\"plain-admin-secret\""
                + " user_plain-admin=\"plain-admin-secret\" user_plain-user1=\"plain-user1-secret\";";
        for (ListenerName each : List.of(config.brokerListenerName(), config.controllerListenerName())) {
            settings.putIfAbsent(each.configPrefix() + "plain.sasl.jaas.config", login);
        }
    }
}
