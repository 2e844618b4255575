package org.apache.kafka.common.test;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import judge.cluster.Insides;
import judge.cluster.WireCluster;
import kafka.server.BrokerServer;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;

/**
 * As much of Apache's class of this name as the tests of Kafka Streams use, over kraft-wire nodes.
 * It stands before the one in kafka-test-common-runtime.
 */
public class KafkaClusterTestKit implements AutoCloseable {
    private final WireCluster cluster;
    private final MockFaultHandler faults = new MockFaultHandler("kraft-wire");

    private KafkaClusterTestKit(WireCluster cluster) {
        this.cluster = cluster;
    }

    /** Settings of a cluster whose nodes are broker and controller, as the tests ask for them. */
    public static class Builder {
        private final TestKitNodes nodes;
        private final Map<String, String> settings = new HashMap<>();

        public Builder(TestKitNodes nodes) {
            this.nodes = nodes;
        }

        public Builder setConfigProp(String name, Object value) {
            settings.put(name, value instanceof Password secret ? secret.value() : value.toString());
            return this;
        }

        public KafkaClusterTestKit build() {
            Map<Integer, Map<String, String>> apart = nodes.brokerNodes().values().stream()
                    .collect(Collectors.toMap(TestKitNode::id, TestKitNode::propertyOverrides));
            ClusterConfig config = ClusterConfig.defaultBuilder()
                    .setTypes(Set.of(Type.CO_KRAFT))
                    .setBrokers(nodes.brokerNodes().size())
                    .setControllers(nodes.controllerNodes().size())
                    .setServerProperties(settings)
                    .setPerServerProperties(apart)
                    .setBrokerListenerName(nodes.brokerListenerName())
                    .setBrokerSecurityProtocol(nodes.brokerListenerProtocol())
                    .setControllerListenerName(nodes.controllerListenerName())
                    .setControllerSecurityProtocol(nodes.controllerListenerProtocol())
                    .build();
            return new KafkaClusterTestKit(new WireCluster(config, true));
        }
    }

    /** Part of `startup` here. */
    public void format() {
    }

    public void startup() {
        cluster.start();
    }

    public void waitForReadyBrokers() throws InterruptedException {
        cluster.waitForReadyBrokers();
    }

    public String bootstrapServers() {
        return cluster.bootstrapServers();
    }

    public Map<Integer, BrokerServer> brokers() {
        return Insides.byId(cluster.brokerIds(), id -> {
            throw Insides.aborted("broker " + id);
        });
    }

    public MockFaultHandler nonFatalFaultHandler() {
        return faults;
    }

    public MockFaultHandler fatalFaultHandler() {
        return faults;
    }

    @Override
    public void close() {
        cluster.stop();
    }
}
