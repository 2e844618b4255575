package judge;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A member of a share group that releases one record in ten and accepts the others.
 *
 * <p>{@code d GROUP RECORD COUNT} is a delivery; {@code a GROUP RECORD COUNT} an acceptance of it and
 * {@code n GROUP RECORD COUNT} a release that are confirmed; those with {@code u} and {@code v} in their
 * place are not.
 */
final class ShareMember extends Member {
    private final String topic;
    private final Random random;

    ShareMember(String bootstrap, String topic, String group, String name) {
        super(bootstrap, group, name);
        this.topic = topic;
        this.random = new Random(name.hashCode());
    }

    @Override
    void read() {
        Map<String, Object> settings = settings();
        settings.put("share.acknowledgement.mode", "explicit");
        try (KafkaShareConsumer<byte[], byte[]> consumer =
            new KafkaShareConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (!isOver()) {
                round(consumer, consumer.poll(POLL));
            }
        }
    }

    private void round(KafkaShareConsumer<byte[], byte[]> consumer, ConsumerRecords<byte[], byte[]> records) {
        List<ConsumerRecord<byte[], byte[]>> released = new ArrayList<>();
        StringBuilder delivered = new StringBuilder();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            delivered.append(line("d", record));
            boolean isReleased = random.nextInt(10) == 0;
            consumer.acknowledge(record, isReleased ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
            if (isReleased) {
                released.add(record);
            }
        }
        Lines.print(delivered);
        Map<TopicIdPartition, Optional<KafkaException>> results = consumer.commitSync();
        StringBuilder outcomes = new StringBuilder();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            String kinds = released.contains(record) ? "nv" : "au";
            int which = isConfirmed(results, record) ? 0 : 1;
            outcomes.append(line(kinds.substring(which, which + 1), record));
        }
        Lines.print(outcomes);
    }

    private static boolean isConfirmed(
        Map<TopicIdPartition, Optional<KafkaException>> results, ConsumerRecord<byte[], byte[]> record) {
        TopicPartition place = new TopicPartition(record.topic(), record.partition());
        return results.entrySet().stream()
            .anyMatch(each -> each.getKey().topicPartition().equals(place) && each.getValue().isEmpty());
    }

    private String line(String kind, ConsumerRecord<byte[], byte[]> record) {
        String number = new String(record.value(), StandardCharsets.US_ASCII);
        return kind + " " + group + " " + number + " " + record.deliveryCount().orElseThrow() + "\n";
    }
}
