package judge;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.UnknownMemberIdException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A member of a classic or consumer group that commits after each poll.
 *
 * <p>{@code p GROUP PARTITION OFFSET} is where it begins to read a partition that it was given,
 * {@code r GROUP PARTITION FIRST NEXT} what it read, {@code c GROUP PARTITION NEXT} a confirmed commit.
 * {@code l GROUP PARTITION OFFSET} is a {@code p} of a poll that took long: without processor time, the
 * session may have ended meanwhile, and another member may have read on.
 */
final class OffsetMember extends Member implements ConsumerRebalanceListener {
    /** A third of the sessions of `make coordinators`. */
    private static final long LATE_NS = TimeUnit.SECONDS.toNanos(5);

    private final String topic;
    private final boolean isClassic;
    private final String assignor;
    private KafkaConsumer<byte[], byte[]> consumer;
    private long pollBeganNs;

    OffsetMember(String bootstrap, String topic, String group, String name, boolean isClassic, String assignor) {
        super(bootstrap, group, name);
        this.topic = topic;
        this.isClassic = isClassic;
        this.assignor = assignor;
    }

    @Override
    void read() {
        Map<String, Object> settings = settings();
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("group.protocol", isClassic ? "classic" : "consumer");
        if (isClassic) {
            settings.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer." + assignor);
            settings.put("heartbeat.interval.ms", "1000");
            settings.put("session.timeout.ms", "15000");
        }
        try (KafkaConsumer<byte[], byte[]> opened =
            new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer = opened;
            consumer.subscribe(List.of(topic), this);
            while (!isOver()) {
                pollBeganNs = System.nanoTime();
                try {
                    round(consumer.poll(POLL));
                } catch (UnknownMemberIdException problem) {
                    refused(problem); // its session has ended meanwhile; the next poll joins again
                }
            }
        }
    }

    private void round(ConsumerRecords<byte[], byte[]> records) {
        StringBuilder read = new StringBuilder();
        for (TopicPartition partition : records.partitions()) {
            List<ConsumerRecord<byte[], byte[]>> found = records.records(partition);
            long next = found.get(found.size() - 1).offset() + 1;
            read.append(line("r", partition)).append(found.get(0).offset()).append(' ').append(next).append('\n');
        }
        Lines.print(read);
        if (!records.isEmpty()) {
            commit(records.nextOffsets());
        }
    }

    /** Commit; what is not confirmed is read again by whoever owns the partition then. */
    private void commit(Map<TopicPartition, OffsetAndMetadata> offsets) {
        try {
            consumer.commitSync(offsets);
        } catch (CommitFailedException | RebalanceInProgressException | TimeoutException problem) {
            refused(problem);
            return;
        }
        StringBuilder confirmed = new StringBuilder();
        offsets.forEach((partition, offset) ->
            confirmed.append(line("c", partition)).append(offset.offset()).append('\n'));
        Lines.print(confirmed);
    }

    private void refused(Exception problem) {
        Lines.print("u " + group + " " + problem.getClass().getSimpleName() + "\n");
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        StringBuilder places = new StringBuilder();
        Map<TopicPartition, Long> positions = new LinkedHashMap<>();
        partitions.forEach(partition -> positions.put(partition, consumer.position(partition)));
        String kind = System.nanoTime() - pollBeganNs < LATE_NS ? "p" : "l";
        positions.forEach((partition, position) ->
            places.append(line(kind, partition)).append(position.longValue()).append('\n'));
        Lines.print(places);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        // All that was read is committed, or could not be.
    }

    private String line(String kind, TopicPartition partition) {
        return kind + " " + group + " " + partition.partition() + " ";
    }
}
