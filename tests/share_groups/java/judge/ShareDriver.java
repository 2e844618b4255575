package judge;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Members of one share group until the end of input: {@code ShareDriver BOOTSTRAP GROUP MEMBERS SEED}.
 *
 * <p>The topic has the name of the group. A line {@code d NUMBER COUNT} is a delivery, {@code a
 * NUMBER} an acceptance that the broker has confirmed, {@code u NUMBER} one that it has not, of which
 * nobody knows whether it counts. A member releases one record in ten.
 */
public final class ShareDriver {
    private static final Duration POLL = Duration.ofMillis(200);
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
    private static volatile boolean isOver;

    private ShareDriver() {
    }

    /** Run the members. */
    public static void main(String[] arguments) throws IOException, InterruptedException {
        List<Thread> members = new ArrayList<>();
        for (int number = 0; number < Integer.parseInt(arguments[2]); number++) {
            Random random = new Random(Long.parseLong(arguments[3]) + number);
            members.add(new Thread(() -> member(arguments[0], arguments[1], random)));
        }
        members.forEach(Thread::start);
        while (System.in.read() >= 0) {
            continue;
        }
        isOver = true;
        for (Thread member : members) {
            member.join();
        }
    }

    private static void member(String bootstrap, String group, Random random) {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap, "group.id", group, "share.acknowledgement.mode", "explicit");
        try (KafkaShareConsumer<byte[], byte[]> consumer =
            new KafkaShareConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(group));
            while (!isOver) {
                round(consumer, random);
            }
        }
    }

    private static void round(KafkaShareConsumer<byte[], byte[]> consumer, Random random) {
        List<ConsumerRecord<byte[], byte[]>> accepted = new ArrayList<>();
        StringBuilder lines = new StringBuilder();
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
            lines.append("d ").append(text(record)).append(' ').append(record.deliveryCount().orElseThrow()).append('\n');
            boolean isReleased = random.nextInt(10) == 0;
            consumer.acknowledge(record, isReleased ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
            if (!isReleased) {
                accepted.add(record);
            }
        }
        print(lines);
        Map<TopicIdPartition, Optional<KafkaException>> results = consumer.commitSync();
        StringBuilder confirmed = new StringBuilder();
        for (ConsumerRecord<byte[], byte[]> record : accepted) {
            confirmed.append(isConfirmed(results, record) ? "a " : "u ").append(text(record)).append('\n');
        }
        print(confirmed);
    }

    private static boolean isConfirmed(
        Map<TopicIdPartition, Optional<KafkaException>> results, ConsumerRecord<byte[], byte[]> record) {
        TopicPartition place = new TopicPartition(record.topic(), record.partition());
        return results.entrySet().stream()
            .anyMatch(each -> each.getKey().topicPartition().equals(place) && each.getValue().isEmpty());
    }

    private static String text(ConsumerRecord<byte[], byte[]> record) {
        return new String(record.value(), StandardCharsets.US_ASCII);
    }

    private static void print(CharSequence lines) {
        synchronized (OUT) {
            OUT.append(lines);
            OUT.flush();
        }
    }
}
