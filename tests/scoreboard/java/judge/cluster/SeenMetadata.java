package judge.cluster;

import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.MetadataCache;

/** A broker's metadata as a client sees it, for tests that wait until a topic is known there. */
final class SeenMetadata {
    private final WireCluster cluster;
    private final WireNode node;

    private SeenMetadata(WireCluster cluster, WireNode node) {
        this.cluster = cluster;
        this.node = node;
    }

    static MetadataCache of(WireCluster cluster, WireNode node) {
        SeenMetadata seen = new SeenMetadata(cluster, node);
        return (MetadataCache) Proxy.newProxyInstance(
                MetadataCache.class.getClassLoader(),
                new Class<?>[] {MetadataCache.class},
                (proxy, method, arguments) -> switch (method.getName()) {
                    case "contains" -> {
                        if (!(arguments[0] instanceof String)) {
                            throw Insides.reached("metadata of a partition");
                        }
                        yield seen.topic((String) arguments[0]).isPresent();
                    }
                    case "numPartitions" -> seen.topic((String) arguments[0]).map(each -> each.partitions().size());
                    case "getLeaderAndIsr" -> seen.partition((String) arguments[0], (int) arguments[1]);
                    case "getAliveBrokerNodes" -> seen.brokers();
                    default -> throw Insides.reached("metadata: " + method.getName());
                });
    }

    private List<Node> brokers() throws ExecutionException, InterruptedException {
        try (Admin admin = cluster.admin(Map.of("bootstrap.servers", "localhost:" + cluster.port(node)))) {
            return List.copyOf(admin.describeCluster().nodes().get());
        }
    }

    private Optional<TopicDescription> topic(String name) throws InterruptedException {
        try (Admin admin = cluster.admin(Map.of("bootstrap.servers", "localhost:" + cluster.port(node)))) {
            return Optional.of(admin.describeTopics(List.of(name)).topicNameValues().get(name).get());
        } catch (ExecutionException problem) {
            if (problem.getCause() instanceof UnknownTopicOrPartitionException) {
                return Optional.empty();
            }
            throw new IllegalStateException(problem.getCause());
        }
    }

    private Optional<LeaderAndIsr> partition(String topic, int partition) throws InterruptedException {
        return topic(topic)
                .flatMap(found -> found.partitions().stream().filter(each -> each.partition() == partition).findFirst())
                .filter(each -> each.leader() != null && !each.leader().isEmpty())
                .map(SeenMetadata::ledAndInSync);
    }

    private static LeaderAndIsr ledAndInSync(TopicPartitionInfo found) {
        return new LeaderAndIsr(found.leader().id(), found.isr().stream().map(Node::id).toList());
    }
}
