package judge;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.List;
import java.util.stream.Stream;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.TopicImage;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Replays the log of a metadata directory through Apache's own delta and image, as its loader does:
 * an image for every so many bytes of the log, each from the one before. Prints one line of sums
 * that another replay can be held to, and the milliseconds that reading and replaying took.
 */
public final class MetadataReplay {
    /** What a fetch of Apache's raft client reads at once, and so what its loader gets. */
    private static final int READ_BYTES = 8 << 20;

    private MetadataImage image = MetadataImage.EMPTY;
    private MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
    private long records = 0;
    private long offset = -1;

    private MetadataReplay() {
    }

    private void take(MutableRecordBatch batch) {
        for (Record record : batch) {
            ApiMessageAndVersion decoded =
                MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(record.value()), record.valueSize());
            switch (MetadataRecordType.fromId(decoded.message().apiKey())) {
                case BEGIN_TRANSACTION_RECORD, END_TRANSACTION_RECORD -> { }
                default -> delta.replay(decoded.message());
            }
            records++;
        }
    }

    private void publish() {
        image = delta.apply(new MetadataProvenance(offset, 0, 0, true));
        delta = new MetadataDelta.Builder().setImage(image).build();
    }

    private void replay(Path segment) throws IOException {
        MemoryRecords all = MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(segment)));
        long read = 0;
        for (Iterator<MutableRecordBatch> batches = all.batchIterator(); batches.hasNext(); ) {
            MutableRecordBatch batch = batches.next();
            batch.ensureValid();
            if (!batch.isControlBatch()) {
                take(batch);
            }
            offset = batch.lastOffset();
            read += batch.sizeInBytes();
            if (read >= READ_BYTES) {
                publish();
                read = 0;
            }
        }
        publish();
    }

    private String sums() {
        long partitions = 0;
        long leaders = 0;
        long leaderEpochs = 0;
        long partitionEpochs = 0;
        for (TopicImage topic : image.topics().topicsById().values()) {
            for (PartitionRegistration each : topic.partitions().values()) {
                partitions++;
                leaders += each.leader;
                leaderEpochs += each.leaderEpoch;
                partitionEpochs += each.partitionEpoch;
            }
        }
        return records + " " + partitions + " " + leaders + " " + leaderEpochs + " " + partitionEpochs;
    }

    /** Replay the log of the directory that is named, from its begin. */
    public static void main(String[] arguments) throws IOException {
        long begun = System.nanoTime();
        MetadataReplay replay = new MetadataReplay();
        List<Path> segments;
        try (Stream<Path> files = Files.list(Path.of(arguments[0]))) {
            segments = files.filter(file -> file.getFileName().toString().endsWith(".log")).sorted().toList();
        }
        for (Path segment : segments) {
            replay.replay(segment);
        }
        System.out.println(replay.sums() + " " + (System.nanoTime() - begun) / 1_000_000);
    }
}
