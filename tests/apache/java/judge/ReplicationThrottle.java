package judge;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import kafka.server.ReplicationQuotaManager;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.server.config.ReplicationQuotaManagerConfig;
import org.apache.kafka.server.quota.QuotaType;

/**
 * Apache's ReplicationQuotaManager under a story: "begin NUM SECONDS", "bound MS NUMBER", "record MS
 * BYTES", "list MS TOPIC all|none|NUMBER,...", "exceeded MS", "listed MS TOPIC NUMBER". The last two
 * answer.
 */
public final class ReplicationThrottle {
    private static final StoryClock CLOCK = new StoryClock();
    private static ReplicationQuotaManager manager;

    private ReplicationThrottle() {
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("begin")) {
                CLOCK.set(0);
                manager = new ReplicationQuotaManager(
                    new ReplicationQuotaManagerConfig(
                        Integer.parseInt(words[1]), Integer.parseInt(words[2])),
                    new Metrics(CLOCK), QuotaType.LEADER_REPLICATION, CLOCK);
                continue;
            }
            CLOCK.set(Long.parseLong(words[1]));
            String answer = tell(words);
            if (answer != null) {
                answers.append(answer).append('\n');
            }
        }
        System.out.print(answers);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static String tell(String[] words) {
        switch (words[0]) {
            case "bound":
                manager.updateQuota(Quota.upperBound(Long.parseLong(words[2])));
                return null;
            case "record":
                manager.record(Long.parseLong(words[2]));
                return null;
            case "list":
                list(words[2], words[3]);
                return null;
            case "exceeded":
                return Boolean.toString(manager.isQuotaExceeded());
            default:
                return Boolean.toString(manager.isThrottled(
                    new TopicPartition(words[2], Integer.parseInt(words[3]))));
        }
    }

    private static void list(String topic, String partitions) {
        if (partitions.equals("all")) {
            manager.markThrottled(topic);
        } else if (partitions.equals("none")) {
            manager.removeThrottle(topic);
        } else {
            manager.markThrottled(
                topic, List.of(partitions.split(",")).stream().map(Integer::valueOf).toList());
        }
    }
}
