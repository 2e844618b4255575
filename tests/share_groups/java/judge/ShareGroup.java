package judge;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** A topic, a share group that reads it from its start, and the clients of both. */
final class ShareGroup implements AutoCloseable {
    static final Duration POLL = Duration.ofMillis(200);
    private static final long HANG_MS = 90_000;

    final String name;
    final Admin admin;
    private final String bootstrap;
    private final List<KafkaShareConsumer<byte[], byte[]>> consumers = new ArrayList<>();

    ShareGroup(String bootstrap, String name) {
        this.bootstrap = bootstrap;
        this.name = name;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    /** Create the topic, and let the group read it from its start. */
    void create(int partitions) throws Exception {
        admin.createTopics(Set.of(new NewTopic(name, partitions, (short) 1))).all().get();
        configure("share.auto.offset.reset", "earliest");
    }

    void configure(String setting, String value) throws Exception {
        AlterConfigOp change = new AlterConfigOp(new ConfigEntry(setting, value), AlterConfigOp.OpType.SET);
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, name);
        admin.incrementalAlterConfigs(Map.of(group, List.of(change))).all().get();
    }

    KafkaProducer<byte[], byte[]> producer(Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>(settings);
        all.put("bootstrap.servers", bootstrap);
        return new KafkaProducer<>(all, new ByteArraySerializer(), new ByteArraySerializer());
    }

    /** Produce records with the values 0 to count - 1, over the partitions in turn. */
    void produce(int partitions, int count) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer(Map.of("linger.ms", 50))) {
            for (int number = 0; number < count; number++) {
                producer.send(record(number % partitions, number));
            }
            producer.flush();
        }
    }

    ProducerRecord<byte[], byte[]> record(int partition, int number) {
        byte[] value = Integer.toString(number).getBytes(StandardCharsets.UTF_8);
        return new ProducerRecord<>(name, partition, null, value);
    }

    static int number(ConsumerRecord<byte[], byte[]> record) {
        return Integer.parseInt(new String(record.value(), StandardCharsets.UTF_8));
    }

    static int count(ConsumerRecord<byte[], byte[]> record) {
        return record.deliveryCount().orElseThrow();
    }

    /** A member that acknowledges all that it was given with its next poll. */
    KafkaShareConsumer<byte[], byte[]> member() {
        return member(Map.of());
    }

    /** A member that acknowledges each record itself. */
    KafkaShareConsumer<byte[], byte[]> explicit() {
        return member(Map.of("share.acknowledgement.mode", "explicit"));
    }

    KafkaShareConsumer<byte[], byte[]> member(Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>(settings);
        all.put("bootstrap.servers", bootstrap);
        all.put("group.id", name);
        KafkaShareConsumer<byte[], byte[]> made =
            new KafkaShareConsumer<>(all, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        made.subscribe(List.of(name));
        consumers.add(made);
        return made;
    }

    /** Close a member before the others. */
    void leave(KafkaShareConsumer<byte[], byte[]> member) {
        consumers.remove(member);
        member.close();
    }

    /** Poll until some records come. */
    static List<ConsumerRecord<byte[], byte[]>> some(KafkaShareConsumer<byte[], byte[]> member) {
        List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>();
        until(() -> {
            member.poll(POLL).forEach(found::add);
            return !found.isEmpty();
        });
        return found;
    }

    static void until(BooleanSupplier holds) {
        long end = System.nanoTime() + HANG_MS * 1_000_000;
        while (!holds.getAsBoolean()) {
            if (System.nanoTime() > end) {
                throw new AssertionError("it does not happen");
            }
        }
    }

    @Override
    public void close() {
        consumers.forEach(KafkaShareConsumer::close);
        admin.close();
    }
}
