package judge.cluster;

import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.util.AbstractCollection;
import java.util.AbstractMap;
import java.util.AbstractSet;
import java.util.Collection;
import java.util.Iterator;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.IntFunction;
import java.util.stream.Stream;
import kafka.network.SocketServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import org.apache.kafka.common.memory.MemoryPool;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.mockito.Mockito;
import org.mockito.stubbing.Answer;
import org.opentest4j.TestAbortedException;

/**
 * What a test gets that reaches for the objects inside a broker's process. Ours is another process,
 * so such a test is ended as one that could not be run, unless it asks only for what a process shows.
 */
public final class Insides {
    private Insides() {
    }

    /** An error, because a test that waits for a condition tries again after any exception. */
    public static final class Reached extends Error {
        private static final long serialVersionUID = 1;

        private Reached(String what) {
            super("reaches inside a node: " + what);
        }
    }

    static Reached reached(String what) {
        return new Reached(what);
    }

    /** What ends a test that is not given to `abortedOr` as one that could not be run. */
    public static TestAbortedException aborted(String what) {
        return new TestAbortedException(reached(what).getMessage());
    }

    /**
     * The exception that ends a test: an abort, if what stands here for a broker has caused it, also where
     * the test took it for the class that it is not.
     */
    public static Throwable abortedOr(Throwable problem) {
        for (Throwable each = problem; each != null; each = each.getCause()) {
            if (each instanceof TestAbortedException) {
                return each;
            }
            if (each instanceof Reached) {
                return new TestAbortedException(each.getMessage(), problem);
            }
            if (each instanceof ClassCastException && each.getMessage().contains("Proxy")) {
                return aborted("a class of Apache's");
            }
        }
        return problem;
    }

    static KafkaBroker broker(WireCluster cluster, WireNode node) {
        return (KafkaBroker) Proxy.newProxyInstance(
                KafkaBroker.class.getClassLoader(),
                new Class<?>[] {KafkaBroker.class},
                (proxy, method, arguments) -> switch (method.getName()) {
                    case "isShutdown" -> !node.isRunning();
                    case "shutdown" -> {
                        cluster.shutdownBroker(node.id);
                        yield null;
                    }
                    case "startup" -> {
                        cluster.startBroker(node.id);
                        yield null;
                    }
                    case "awaitShutdown" -> null;
                    case "config" -> node.config();
                    case "groupCoordinator" -> groups(node);
                    case "socketServer" -> sockets(Map.of("boundPort", cluster.port(node)));
                    case "metadataCache" -> SeenMetadata.of(cluster, node);
                    case "clusterId" -> cluster.clusterId();
                    case "boundPort" -> cluster.port(node);
                    case "hashCode" -> node.id;
                    case "equals" -> proxy == arguments[0];
                    case "toString" -> "broker " + node.id;
                    default -> throw reached(method.getName());
                });
    }

    /** A server of sockets; the pool of its memory is a field that a test takes. */
    private static SocketServer sockets(Map<String, Object> answers) throws ReflectiveOperationException {
        SocketServer sockets = Mockito.mock(SocketServer.class, only(answers));
        Field pool = SocketServer.class.getDeclaredField("memoryPool");
        pool.setAccessible(true);
        pool.set(sockets, Proxy.newProxyInstance(
                MemoryPool.class.getClassLoader(),
                new Class<?>[] {MemoryPool.class},
                (proxy, method, arguments) -> {
                    throw reached("the pool of memory");
                }));
        return sockets;
    }

    /** A controller that knows its settings and the ids of topics. */
    static ControllerServer controller(WireCluster cluster, WireNode node) {
        Controller asked = (Controller) Proxy.newProxyInstance(
                Controller.class.getClassLoader(),
                new Class<?>[] {Controller.class},
                (proxy, method, arguments) -> {
                    if (!method.getName().equals("findAllTopicIds")) {
                        throw reached("the controller");
                    }
                    return CompletableFuture.completedFuture(cluster.topicIds());
                });
        try {
            SocketServer sockets = sockets(Map.of("config", node.config()));
            Map<String, Object> answers =
                    Map.of("controller", asked, "socketServer", sockets, "config", node.config());
            return Mockito.mock(ControllerServer.class, only(answers));
        } catch (ReflectiveOperationException problem) {
            throw new IllegalStateException(problem);
        }
    }

    /** Of an object whose class is not an interface: what some of its methods return. */
    private static Answer<Object> only(Map<String, Object> answers) {
        return call -> {
            String method = call.getMethod().getName();
            if (!answers.containsKey(method)) {
                throw reached(method);
            }
            return answers.get(method);
        };
    }

    /** Only the settings of `__consumer_offsets`, with which tests create it themselves. */
    private static GroupCoordinator groups(WireNode node) {
        return (GroupCoordinator) Proxy.newProxyInstance(
                GroupCoordinator.class.getClassLoader(),
                new Class<?>[] {GroupCoordinator.class},
                (proxy, method, arguments) -> {
                    if (!method.getName().equals("groupMetadataTopicConfigs")) {
                        throw reached("the group coordinator");
                    }
                    GroupCoordinatorConfig config = node.config().groupCoordinatorConfig();
                    Properties settings = new Properties();
                    settings.put("cleanup.policy", "compact");
                    settings.put("compression.type", "producer");
                    settings.put("segment.bytes", Integer.toString(config.offsetsTopicSegmentBytes()));
                    return settings;
                });
    }

    /**
     * Nodes that a test can ask for by their ids, or as a stream. One that waits for each of them waits for
     * nothing; one that takes the first of them reaches inside.
     */
    public static <V> Map<Integer, V> byId(Set<Integer> ids, IntFunction<V> node) {
        return new AbstractMap<>() {
            @Override
            public Set<Integer> keySet() {
                return ids;
            }

            @Override
            public int size() {
                return ids.size();
            }

            @Override
            public boolean containsKey(Object key) {
                return ids.contains(key);
            }

            @Override
            public V get(Object key) {
                return node.apply((Integer) key);
            }

            @Override
            public Collection<V> values() {
                return new AbstractCollection<>() {
                    @Override
                    public Iterator<V> iterator() {
                        return new Nothing<>();
                    }

                    @Override
                    public int size() {
                        return ids.size();
                    }

                    @Override
                    public Stream<V> stream() {
                        return ids.stream().map(node::apply);
                    }
                };
            }

            @Override
            public Set<Map.Entry<Integer, V>> entrySet() {
                return new AbstractSet<>() {
                    @Override
                    public Iterator<Map.Entry<Integer, V>> iterator() {
                        return new Nothing<>();
                    }

                    @Override
                    public int size() {
                        return ids.size();
                    }
                };
            }
        };
    }

    private static final class Nothing<V> implements Iterator<V> {
        @Override
        public boolean hasNext() {
            return false;
        }

        @Override
        public V next() {
            throw reached("the first of the nodes");
        }
    }
}
