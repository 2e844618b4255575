package judge;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.stream.Stream;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.ControlRecordUtils;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * What Apache's own classes read in the files of a log directory, a JSON line each.
 *
 * <p>{@code batches FILE…}, {@code records FILE…} and {@code metadata FILE…} read segments;
 * {@code partitions DIRECTORY [OFFSET]} replays the newest snapshot before an offset and the log
 * behind it, and {@code snapshot DIRECTORY [OFFSET]} the snapshot alone.
 */
public final class LogFiles {
    private static final PrintStream OUT =
        new PrintStream(new java.io.BufferedOutputStream(System.out), false, StandardCharsets.UTF_8);

    private LogFiles() {
    }

    /** What one batch or record becomes. */
    interface Form {
        void take(Path file, int position, DefaultRecordBatch batch) throws IOException;
    }

    /** Every whole batch of a file with its position; the file is mapped, however large it is. */
    static void walk(Path file, Form form) throws IOException {
        try (FileChannel channel = FileChannel.open(file)) {
            MemoryRecords records = MemoryRecords.readableRecords(channel.map(MapMode.READ_ONLY, 0, channel.size()));
            int position = 0;
            for (Iterator<MutableRecordBatch> it = records.batchIterator(); it.hasNext(); ) {
                MutableRecordBatch batch = it.next();
                form.take(file, position, (DefaultRecordBatch) batch);
                position += batch.sizeInBytes();
            }
        }
    }

    private static void line(ObjectNode json) throws IOException {
        OUT.println(Oracle.MAPPER.writeValueAsString(json));
    }

    private static void batch(Path file, int position, DefaultRecordBatch batch) throws IOException {
        ObjectNode json = Oracle.MAPPER.createObjectNode();
        json.put("directory", file.getParent().getFileName().toString());
        json.put("segment", file.getFileName().toString());
        json.put("position", position);
        json.put("sizeInBytes", batch.sizeInBytes());
        json.put("baseOffset", batch.baseOffset());
        json.put("lastOffset", batch.lastOffset());
        json.put("count", batch.countOrNull());
        json.put("leaderEpoch", batch.partitionLeaderEpoch());
        json.put("magic", batch.magic());
        json.put("crc", batch.checksum());
        json.put("crcValid", batch.isValid());
        json.put("compression", batch.compressionType().name);
        json.put("timestampType", batch.timestampType().id);
        json.put("baseTimestamp", batch.baseTimestamp());
        json.put("maxTimestamp", batch.maxTimestamp());
        json.put("isTransactional", batch.isTransactional());
        json.put("isControl", batch.isControlBatch());
        json.put("producerId", batch.producerId());
        json.put("producerEpoch", batch.producerEpoch());
        json.put("baseSequence", batch.baseSequence());
        line(json);
    }

    private static void records(Path file, int position, DefaultRecordBatch batch) throws IOException {
        if (batch.isControlBatch()) {
            return;
        }
        for (Record record : batch) {
            ObjectNode json = Oracle.MAPPER.createObjectNode();
            json.put("directory", file.getParent().getFileName().toString());
            json.put("offset", record.offset());
            json.put("timestamp", record.timestamp());
            json.put("timestampType", batch.timestampType().id);
            json.put("key", hex(record.key()));
            json.put("value", hex(record.value()));
            ArrayNode headers = json.putArray("headers");
            for (Header header : record.headers()) {
                byte[] value = header.value();
                headers.addArray().add(header.key())
                    .add(value == null ? null : HexFormat.of().formatHex(value));
            }
            line(json);
        }
    }

    private static String hex(ByteBuffer bytes) {
        if (bytes == null) {
            return null;
        }
        byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        return HexFormat.of().formatHex(copy);
    }

    private static void metadata(Path file, int position, DefaultRecordBatch batch) throws IOException {
        for (Record record : batch) {
            ObjectNode json = Oracle.MAPPER.createObjectNode();
            json.put("offset", record.offset());
            json.put("epoch", batch.partitionLeaderEpoch());
            json.put("isControl", batch.isControlBatch());
            if (batch.isControlBatch()) {
                ControlRecordType type = ControlRecordType.parse(record.key());
                json.put("type", type.name());
                if (type == ControlRecordType.LEADER_CHANGE) {
                    json.put("leaderId", ControlRecordUtils.deserializeLeaderChangeMessage(record).leaderId());
                }
            } else {
                ApiMessageAndVersion decoded = decoded(record);
                MetadataRecordType type = MetadataRecordType.fromId(decoded.message().apiKey());
                json.put("type", type.name());
                json.put("version", decoded.version());
                json.set("json", MetadataJsonConverters.writeJson(decoded.message(), decoded.version()));
            }
            line(json);
        }
    }

    static ApiMessageAndVersion decoded(Record record) {
        return MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(record.value()), record.valueSize());
    }

    static List<Path> named(Path directory, String suffix) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.filter(file -> file.getFileName().toString().endsWith(suffix)).sorted().toList();
        }
    }

    private static void partitions(Path directory, long end, boolean withLog) throws IOException {
        MetadataImage image = MetadataImages.at(directory, end, withLog);
        image.topics().topicsById().values().forEach(topic -> topic.partitions().forEach((number, each) -> {
            try {
                partition(topic.name(), topic.id().toString(), number, each);
            } catch (IOException broken) {
                throw new java.io.UncheckedIOException(broken);
            }
        }));
    }

    private static void partition(String topic, String id, int number, PartitionRegistration each)
            throws IOException {
        ObjectNode json = Oracle.MAPPER.createObjectNode();
        json.put("topic", topic);
        json.put("topicId", id);
        json.put("partition", number);
        ArrayNode replicas = json.putArray("replicas");
        Arrays.stream(each.replicas).forEach(replicas::add);
        ArrayNode isr = json.putArray("isr");
        Arrays.stream(each.isr).forEach(isr::add);
        json.put("leader", each.leader);
        json.put("leaderEpoch", each.leaderEpoch);
        json.put("partitionEpoch", each.partitionEpoch);
        line(json);
    }

    /** Print what the arguments ask for. */
    public static void main(String[] arguments) throws IOException {
        List<String> rest = List.of(arguments).subList(1, arguments.length);
        if (arguments[0].equals("partitions") || arguments[0].equals("snapshot")) {
            long end = rest.size() > 1 ? Long.parseLong(rest.get(1)) : Long.MAX_VALUE;
            partitions(Path.of(rest.get(0)), end, arguments[0].equals("partitions"));
        } else {
            Form form = switch (arguments[0]) {
                case "batches" -> LogFiles::batch;
                case "records" -> LogFiles::records;
                default -> LogFiles::metadata;
            };
            for (String file : rest) {
                walk(Path.of(file), form);
            }
        }
        OUT.flush();
    }
}
