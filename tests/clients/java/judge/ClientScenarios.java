package judge;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** What the scenarios promise, told with the Java producer, consumer and admin client. */
final class ClientScenarios {
    private static final Duration POLL = Duration.ofMillis(200);
    private static final long OPERATION_MS = 30_000;
    private static final long BASE_TIMESTAMP_MS = 1_700_000_000_000L;
    private static final int LARGE_BYTES = 1_000_000;
    private static final int RESTART_TOTAL = 100;
    private static final int RESTART_FIRST = 40;

    private static final short REPLICAS = Short.parseShort(System.getenv().getOrDefault("REPLICAS", "1"));
    /**
     * Brokers restart meanwhile: whoever retries then writes once and in order only as an idempotent
     * producer, and a member that joins again reads again what nobody has committed.
     */
    private static final boolean LEADERS_MOVE = REPLICAS > 1;
    private static final int SESSION_MS = 6_000;
    private static final String GROUP_PROTOCOL = System.getenv().getOrDefault("GROUP_PROTOCOL", "classic");

    private final String bootstrap;

    ClientScenarios(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    void connect(String topic) throws Exception {
        try (Admin admin = admin()) {
            expect(admin.describeCluster().nodes().get().isEmpty(), false, "no broker");
        }
    }

    void metadata(String topic) throws Exception {
        create(topic, 3, Map.of());
        try (Admin admin = admin()) {
            List<String> brokers = new ArrayList<>();
            for (Node node : admin.describeCluster().nodes().get()) {
                brokers.add(node.host() + ":" + node.port());
            }
            List<String> all = List.of(bootstrap.split(","));
            expect(all.containsAll(brokers), true, "known brokers, which are " + brokers);
            boolean enough = brokers.size() == all.size() || (LEADERS_MOVE && brokers.size() == all.size() - 1);
            expect(enough, true, "all brokers but one that restarts are in " + brokers);
        }
        expect(partitions(topic), 3, "partitions");
    }

    void codec(String topic, String codec) throws Exception {
        create(topic, 1, Map.of());
        List<ProducerRecord<byte[], byte[]>> sent = numbered(topic, 0, 300);
        produce(sent, Map.of("compression.type", codec));
        expectValues(consume(topic, 1, sent.size()), sent);
    }

    void keys(String topic) throws Exception {
        create(topic, 4, Map.of());
        List<ProducerRecord<byte[], byte[]>> sent = new ArrayList<>();
        for (int n = 0; n < 170; n++) {
            sent.add(new ProducerRecord<>(topic, bytes("key-" + n % 17), bytes("" + n)));
        }
        produce(sent, Map.of());
        Map<String, Set<Integer>> places = new HashMap<>();
        List<String> got = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> record : consume(topic, 4, sent.size())) {
            places.computeIfAbsent(text(record.key()), key -> new HashSet<>()).add(record.partition());
            got.add(text(record.key()) + "=" + text(record.value()));
        }
        List<String> wanted = sent.stream().map(r -> text(r.key()) + "=" + text(r.value())).sorted().toList();
        expect(got.stream().sorted().toList(), wanted, "keys and values");
        expect(places.values().stream().allMatch(found -> found.size() == 1), true, "one partition per key");
    }

    void headers(String topic) throws Exception {
        create(topic, 1, Map.of());
        List<Header> given = List.of(
            new RecordHeader("a", bytes("1")), new RecordHeader("b", new byte[0]),
            new RecordHeader("a", new byte[] {1, -1}), new RecordHeader("ü", bytes("x")),
            new RecordHeader("none", (byte[]) null));
        produce(List.of(
            new ProducerRecord<>(topic, 0, null, null, bytes("with"), given),
            new ProducerRecord<>(topic, 0, null, bytes("without"))), Map.of());
        List<ConsumerRecord<byte[], byte[]>> got = consume(topic, 1, 2);
        expect(List.of(got.get(0).headers().toArray()), given, "headers");
        expect(got.get(1).headers().toArray().length, 0, "no headers");
    }

    void nulls(String topic) throws Exception {
        create(topic, 1, Map.of());
        List<ProducerRecord<byte[], byte[]>> sent = List.of(
            new ProducerRecord<>(topic, 0, bytes("deleted"), null),
            new ProducerRecord<>(topic, 0, bytes("empty"), new byte[0]),
            new ProducerRecord<>(topic, 0, null, bytes("no key")));
        produce(sent, Map.of());
        List<ConsumerRecord<byte[], byte[]>> got = consume(topic, 1, 3);
        expectValues(got, sent);
        for (int i = 0; i < 3; i++) {
            expect(text(got.get(i).key()), text(sent.get(i).key()), "key " + i);
        }
    }

    void large(String topic) throws Exception {
        create(topic, 1, Map.of());
        Random random = new Random(7);
        List<ProducerRecord<byte[], byte[]>> sent = new ArrayList<>();
        for (int n = 0; n < 5; n++) {
            byte[] value = new byte[LARGE_BYTES];
            random.nextBytes(value);
            sent.add(new ProducerRecord<>(topic, 0, null, value));
        }
        produce(sent, Map.of("max.request.size", 2_000_000));
        List<ConsumerRecord<byte[], byte[]>> got = consume(topic, 1, sent.size());
        for (int i = 0; i < sent.size(); i++) {
            expect(Arrays.equals(got.get(i).value(), sent.get(i).value()), true, "record " + i + " is identical");
        }
    }

    void idempotent(String topic) throws Exception {
        create(topic, 2, Map.of());
        List<ProducerRecord<byte[], byte[]>> sent = new ArrayList<>();
        for (int n = 0; n < 1000; n++) {
            sent.add(new ProducerRecord<>(topic, n % 2, null, bytes(String.format("%06d", n))));
        }
        produce(sent, Map.of("enable.idempotence", true, "batch.size", 500));
        List<ConsumerRecord<byte[], byte[]>> got = consume(topic, 2, sent.size());
        for (int partition = 0; partition < 2; partition++) {
            int wanted = partition;
            expectValues(
                got.stream().filter(r -> r.partition() == wanted).toList(),
                sent.stream().filter(r -> r.partition() == wanted).toList());
        }
    }

    void group(String topic) throws Exception {
        create(topic, 6, Map.of());
        List<GroupMember> members = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            members.add(new GroupMember(consumer(Map.of("group.id", topic)), topic));
        }
        waitUntil("3 members hold 2 partitions each", () -> members.stream().allMatch(m -> m.held() == 2));
        members.remove(0).leave();
        waitUntil("the 2 others hold 3 partitions each", () -> members.stream().allMatch(m -> m.held() == 3));
        List<ProducerRecord<byte[], byte[]>> sent = new ArrayList<>();
        for (int n = 0; n < 60; n++) {
            sent.add(new ProducerRecord<>(topic, n % 6, null, bytes("" + n)));
        }
        produce(sent, Map.of());
        waitUntil("all 60 records arrived", () -> received(members).size() >= 60);
        expect(received(members), sent.stream().map(r -> text(r.value())).sorted().toList(), "values");
        for (GroupMember member : members) {
            member.leave();
        }
    }

    /** The values that members were given, once each where they may rejoin. */
    private static List<String> received(List<GroupMember> members) {
        Stream<String> found = members.stream().flatMap(m -> m.values().stream()).sorted();
        return (LEADERS_MOVE ? found.distinct() : found).toList();
    }

    void restartBefore(String topic) throws Exception {
        create(topic, 1, Map.of());
        produce(numbered(topic, 0, RESTART_TOTAL), Map.of());
        expectValues(consumeInGroup(topic, RESTART_FIRST), numbered(topic, 0, RESTART_FIRST));
    }

    void restartAfter(String topic) throws Exception {
        int rest = RESTART_TOTAL - RESTART_FIRST;
        expectValues(consumeInGroup(topic, rest), numbered(topic, RESTART_FIRST, rest));
    }

    void timestamps(String topic) throws Exception {
        create(topic, 1, Map.of());
        List<ProducerRecord<byte[], byte[]>> sent = new ArrayList<>();
        for (int n = 0; n < 20; n++) {
            sent.add(new ProducerRecord<>(topic, 0, BASE_TIMESTAMP_MS + 1000L * n, null, bytes("" + n)));
        }
        produce(sent, Map.of());
        TopicPartition place = new TopicPartition(topic, 0);
        long[][] cases = {{0, 0}, {5000, 5}, {5001, 6}, {19000, 19}};
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of())) {
            for (long[] one : cases) {
                OffsetAndTimestamp found =
                    consumer.offsetsForTimes(Map.of(place, BASE_TIMESTAMP_MS + one[0])).get(place);
                expect(found == null ? -1L : found.offset(), one[1], "offset " + one[0] + " ms after the first");
            }
            expect(consumer.offsetsForTimes(Map.of(place, BASE_TIMESTAMP_MS + 60_000)).get(place), null, "after the last");
        }
    }

    void seek(String topic) throws Exception {
        create(topic, 1, Map.of());
        produce(numbered(topic, 0, 30), Map.of());
        TopicPartition place = new TopicPartition(topic, 0);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of())) {
            consumer.assign(List.of(place));
            consumer.seekToEnd(List.of(place));
            expect(consumer.position(place), 30L, "position at the end");
            produce(numbered(topic, 30, 1), Map.of());
            expect(take(consumer, 1).get(0).offset(), 30L, "the offset after seek to end");
            consumer.seekToBeginning(List.of(place));
            expect(take(consumer, 1).get(0).offset(), 0L, "the offset after seek to beginning");
        }
    }

    void topics(String topic) throws Exception {
        create(topic, 3, Map.of("retention.ms", "3600000"));
        expect(config(topic), "3600000", "retention.ms");
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        try (Admin admin = admin()) {
            placed(() -> admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(5))).all().get());
            waitUntil("the topic shows 5 partitions", () -> partitions(topic) == 5);
            AlterConfigOp set =
                new AlterConfigOp(new ConfigEntry("retention.ms", "7200000"), AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(resource, List.of(set))).all().get();
            waitUntil("retention.ms is 7200000", () -> config(topic).equals("7200000"));
            admin.deleteTopics(List.of(topic)).all().get();
        }
        waitUntil("the topic is gone", () -> partitions(topic) == 0);
    }

    void autoCreate(String topic) throws Exception {
        produce(List.of(new ProducerRecord<>(topic, bytes("first"))), Map.of());
        int count = partitions(topic);
        expect(text(consume(topic, count, 1).get(0).value()), "first", "the value");
    }

    void partitions200(String topic) throws Exception {
        create(topic, 200, Map.of());
        List<ProducerRecord<byte[], byte[]>> sent = new ArrayList<>();
        for (int n = 0; n < 200; n++) {
            sent.add(new ProducerRecord<>(topic, n, null, bytes("" + n)));
        }
        produce(sent, Map.of());
        List<Integer> got = consume(topic, 200, 200).stream().map(ConsumerRecord::partition).sorted().toList();
        expect(got, IntStream.range(0, 200).boxed().toList(), "one record of each partition");
    }

    private Admin admin() {
        Map<String, Object> all = new HashMap<>(ClientSecurity.settings());
        all.put("bootstrap.servers", bootstrap);
        return Admin.create(all);
    }

    private void create(String topic, int partitions, Map<String, String> configs) throws Exception {
        try (Admin admin = admin()) {
            List<NewTopic> wanted = List.of(new NewTopic(topic, partitions, REPLICAS).configs(configs));
            placed(() -> admin.createTopics(wanted).all().get());
        }
        waitUntil("the topic shows its partitions", () -> partitions(topic) == partitions);
    }

    /**
     * Make a change that places replicas; again while a broker is about to stop: Kafka places none on
     * it, and refuses what needs all brokers, which no client tries again by itself.
     */
    private static void placed(Callable<Void> change) throws Exception {
        long deadline = System.currentTimeMillis() + OPERATION_MS;
        while (true) {
            try {
                change.call();
                return;
            } catch (ExecutionException failed) {
                boolean isShort = failed.getCause() instanceof InvalidReplicationFactorException;
                if (!LEADERS_MOVE || !isShort || System.currentTimeMillis() > deadline) {
                    throw failed;
                }
            }
            Thread.sleep(100);
        }
    }

    private int partitions(String topic) throws Exception {
        try (Admin admin = admin()) {
            return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
        } catch (ExecutionException failed) {
            if (failed.getCause() instanceof UnknownTopicOrPartitionException) {
                return 0;
            }
            throw failed;
        }
    }

    private String config(String topic) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        try (Admin admin = admin()) {
            return admin.describeConfigs(List.of(resource)).all().get().get(resource).get("retention.ms").value();
        }
    }

    private void produce(List<ProducerRecord<byte[], byte[]>> records, Map<String, Object> settings) throws Exception {
        Map<String, Object> all = new HashMap<>(settings);
        all.putAll(ClientSecurity.settings());
        all.put("bootstrap.servers", bootstrap);
        all.put("acks", "all");
        all.putIfAbsent("enable.idempotence", LEADERS_MOVE);
        all.put("linger.ms", 5);
        try (KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(all, new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<RecordMetadata>> acknowledged = new ArrayList<>();
            for (ProducerRecord<byte[], byte[]> record : records) {
                acknowledged.add(producer.send(record));
            }
            for (Future<RecordMetadata> one : acknowledged) {
                one.get();
            }
        }
    }

    private KafkaConsumer<byte[], byte[]> consumer(Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>(settings);
        all.putAll(ClientSecurity.settings());
        all.put("bootstrap.servers", bootstrap);
        all.put("auto.offset.reset", "earliest");
        all.put("enable.auto.commit", false);
        all.put("group.protocol", GROUP_PROTOCOL);
        if (LEADERS_MOVE && GROUP_PROTOCOL.equals("classic")) {
            all.put("session.timeout.ms", SESSION_MS); // a new coordinator waits so long for who has left
        }
        return new KafkaConsumer<>(all, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private List<ConsumerRecord<byte[], byte[]>> consume(String topic, int partitions, int count) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of())) {
            Collection<TopicPartition> places = IntStream.range(0, partitions)
                .mapToObj(number -> new TopicPartition(topic, number)).collect(Collectors.toList());
            consumer.assign(places);
            return take(consumer, count);
        }
    }

    private List<ConsumerRecord<byte[], byte[]>> consumeInGroup(String topic, int count) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of("group.id", topic))) {
            consumer.subscribe(List.of(topic));
            List<ConsumerRecord<byte[], byte[]>> found = take(consumer, count).subList(0, count);
            long next = found.get(count - 1).offset() + 1;
            consumer.commitSync(Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(next)));
            return found;
        }
    }

    private static List<ConsumerRecord<byte[], byte[]>> take(KafkaConsumer<byte[], byte[]> consumer, int count) {
        List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>();
        long deadline = System.currentTimeMillis() + OPERATION_MS;
        while (found.size() < count) {
            consumer.poll(POLL).forEach(found::add);
            if (System.currentTimeMillis() > deadline) {
                throw new AssertionError(found.size() + " of " + count + " records in time");
            }
        }
        return found;
    }

    private static List<ProducerRecord<byte[], byte[]>> numbered(String topic, int start, int count) {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int n = start; n < start + count; n++) {
            String text = String.format("record %06d", n) + " kafka wire".repeat(10);
            records.add(new ProducerRecord<>(topic, 0, null, bytes(text)));
        }
        return records;
    }

    private static void expectValues(
        List<ConsumerRecord<byte[], byte[]>> got, List<ProducerRecord<byte[], byte[]>> sent) {
        List<String> wanted = sent.stream().map(r -> text(r.value())).toList();
        List<String> values = got.stream()
            .sorted(Comparator.comparingLong(ConsumerRecord::offset)).map(r -> text(r.value())).toList();
        expect(values.subList(0, Math.min(values.size(), wanted.size())), wanted, "values");
    }

    private static void expect(Object actual, Object expected, String what) {
        if (!java.util.Objects.equals(actual, expected)) {
            String got = String.valueOf(actual);
            String wanted = String.valueOf(expected);
            throw new AssertionError(what + ": got " + got.substring(0, Math.min(200, got.length()))
                + ", expected " + wanted.substring(0, Math.min(200, wanted.length())));
        }
    }

    private static void waitUntil(String what, Callable<Boolean> condition) throws Exception {
        long deadline = System.currentTimeMillis() + 2 * OPERATION_MS;
        while (!condition.call()) {
            if (System.currentTimeMillis() > deadline) {
                throw new AssertionError("not in time: " + what);
            }
            Thread.sleep(50);
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** Nulls stay apart from empty values. */
    private static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }
}
