package judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Transactions of Apache's own Java client, told step by step: {@code TransactionDriver BOOTSTRAP}.
 *
 * <p>One JSON command a line, one JSON answer a line; the commands are those of
 * {@code tests/clients/transactions/driver.py}.
 */
public final class TransactionDriver {
    private static final Duration POLL = Duration.ofMillis(100);

    /** A transactional producer, and the consumer whose offsets it commits, if it has one. */
    private static final class Session {
        KafkaProducer<String, String> producer;
        KafkaConsumer<String, String> consumer;
        final List<ConsumerRecord<String, String>> waiting = new ArrayList<>();
        final Map<TopicPartition, OffsetAndMetadata> moved = new HashMap<>();
    }

    private final String bootstrap;
    private final Map<String, Session> sessions = new HashMap<>();

    private TransactionDriver(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    /** Answer commands until standard input ends. */
    public static void main(String[] arguments) throws Exception {
        TransactionDriver driver = new TransactionDriver(arguments[0]);
        ObjectMapper json = new ObjectMapper();
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> answer = new HashMap<>();
            try {
                answer.put("records", driver.obey(json.readTree(line)));
            } catch (Exception failure) {
                Throwable cause = failure instanceof ExecutionException ? failure.getCause() : failure;
                answer.put("error", cause.toString());
                answer.put("fatal", isFatal(failure) || isFatal(cause) || isFatal(cause.getCause()));
            }
            out.println(json.writeValueAsString(answer));
        }
        System.exit(0);
    }

    private static boolean isFatal(Throwable cause) {
        return cause instanceof ProducerFencedException || cause instanceof AuthorizationException
            || cause instanceof UnsupportedVersionException || cause instanceof IllegalStateException;
    }

    private List<List<Object>> obey(JsonNode command) throws Exception {
        Session session = sessions.computeIfAbsent(command.path("producer").asText(), name -> new Session());
        switch (command.get("do").asText()) {
            case "open" -> open(session, command);
            case "begin" -> session.producer.beginTransaction();
            case "send" -> {
                return send(session, command);
            }
            case "commit" -> commit(session);
            case "abort" -> {
                if (command.path("offsets").asBoolean()) {
                    sendOffsets(session);
                }
                abort(session);
            }
            case "close" -> close(session);
            case "poll" -> {
                return poll(session, command.get("max").asInt());
            }
            case "read" -> {
                return read(command);
            }
            default -> throw new IllegalArgumentException(command.toString());
        }
        return List.of();
    }

    private void open(Session session, JsonNode command) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", command.get("id").asText());
        settings.put("transaction.timeout.ms", command.get("timeout_ms").asInt());
        settings.put("linger.ms", 5);
        close(session);
        session.producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        session.producer.initTransactions();
        if (command.has("group")) {
            session.consumer = consumer(command.get("group").asText(), "read_committed");
            session.consumer.subscribe(List.of(command.get("source").asText()));
        }
    }

    private KafkaConsumer<String, String> consumer(String group, String isolation) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("isolation.level", isolation);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", false);
        settings.put("session.timeout.ms", 6_000);
        settings.put("heartbeat.interval.ms", 1_000);
        if (group != null) {
            settings.put("group.id", group);
        }
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    /** Return what was sent with the offsets that it has. */
    private static List<List<Object>> send(Session session, JsonNode command) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode record : command.get("records")) {
            sent.add(session.producer.send(new ProducerRecord<>(
                command.get("topic").asText(), record.get(0).asInt(), null, record.get(1).asText())));
        }
        List<List<Object>> placed = new ArrayList<>();
        for (int i = 0; i < sent.size(); i++) {
            RecordMetadata one = sent.get(i).get();
            placed.add(List.of(one.partition(), one.offset(), command.get("records").get(i).get(1).asText()));
        }
        return placed;
    }

    private static void sendOffsets(Session session) {
        if (!session.moved.isEmpty()) {
            session.producer.sendOffsetsToTransaction(session.moved, session.consumer.groupMetadata());
        }
    }

    private static void commit(Session session) {
        sendOffsets(session);
        session.producer.commitTransaction();
        session.moved.clear();
    }

    private static void abort(Session session) {
        session.producer.abortTransaction();
        session.moved.clear();
        if (session.consumer != null) {
            session.waiting.clear();
            Map<TopicPartition, OffsetAndMetadata> committed =
                session.consumer.committed(session.consumer.assignment());
            for (TopicPartition place : session.consumer.assignment()) {
                OffsetAndMetadata found = committed.get(place);
                session.consumer.seek(place, found == null ? 0 : found.offset());
            }
        }
    }

    private static void close(Session session) {
        if (session.consumer != null) {
            session.consumer.close();
        }
        if (session.producer != null) {
            session.producer.close(Duration.ZERO);
        }
        session.consumer = null;
        session.producer = null;
        session.waiting.clear();
        session.moved.clear();
    }

    private static List<List<Object>> poll(Session session, int max) {
        if (session.waiting.isEmpty()) {
            session.consumer.poll(Duration.ofSeconds(1)).forEach(session.waiting::add);
        }
        List<ConsumerRecord<String, String>> taken =
            session.waiting.subList(0, Math.min(max, session.waiting.size()));
        List<List<Object>> found = told(taken);
        for (ConsumerRecord<String, String> record : taken) {
            TopicPartition place = new TopicPartition(record.topic(), record.partition());
            session.moved.put(place, new OffsetAndMetadata(record.offset() + 1));
        }
        taken.clear();
        return found;
    }

    /** All from the beginning: as many as are wanted, and what else comes while it is quiet. */
    private List<List<Object>> read(JsonNode command) {
        String topic = command.get("topic").asText();
        int count = command.get("count").asInt();
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer(null, command.get("isolation").asText())) {
            consumer.assign(IntStream.range(0, command.get("partitions").asInt())
                .mapToObj(number -> new TopicPartition(topic, number)).toList());
            consumer.seekToBeginning(consumer.assignment());
            long late = System.currentTimeMillis() + command.get("seconds").asInt() * 1_000L;
            while (found.size() < count && System.currentTimeMillis() < late) {
                consumer.poll(POLL).forEach(found::add);
            }
            long quiet = System.currentTimeMillis() + command.get("quiet_ms").asInt();
            while (System.currentTimeMillis() < quiet) {
                consumer.poll(POLL).forEach(found::add);
            }
        }
        return told(found);
    }

    private static List<List<Object>> told(List<ConsumerRecord<String, String>> records) {
        List<List<Object>> told = new ArrayList<>();
        records.forEach(record -> told.add(List.of(record.partition(), record.offset(), record.value())));
        return told;
    }
}
