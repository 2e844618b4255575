package judge;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/** One member of a consumer group, polling on a thread of its own. */
final class GroupMember {
    private static final Duration POLL = Duration.ofMillis(200);
    private static final long LEAVE_MS = 30_000;

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final List<String> values = new CopyOnWriteArrayList<>();
    private final Thread thread;
    private volatile int held;
    private volatile boolean leaving;

    GroupMember(KafkaConsumer<byte[], byte[]> consumer, String topic) {
        this.consumer = consumer;
        this.thread = new Thread(() -> run(topic));
        thread.setDaemon(true);
        thread.start();
    }

    private void run(String topic) {
        consumer.subscribe(List.of(topic));
        while (!leaving) {
            consumer.poll(POLL).forEach(record -> values.add(new String(record.value(), StandardCharsets.UTF_8)));
            held = consumer.assignment().size();
        }
        consumer.close();
    }

    int held() {
        return held;
    }

    List<String> values() {
        return values;
    }

    void leave() throws InterruptedException {
        leaving = true;
        thread.join(LEAVE_MS);
    }
}
