package judge.cluster;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Collectors;

/** A free port for each listener of each node, the same one for the life of a cluster. */
final class Ports {
    private final Map<String, Integer> chosen = new HashMap<>();

    synchronized int of(int node, String use) {
        return chosen.computeIfAbsent(node + use, key -> {
            try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
                return socket.getLocalPort();
            } catch (IOException problem) {
                throw new UncheckedIOException(problem);
            }
        });
    }

    /** As a list for bootstrapping. */
    String addresses(Collection<Integer> nodes, String use) {
        return nodes.stream().map(id -> "localhost:" + of(id, use)).collect(Collectors.joining(","));
    }
}
