package judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.TopicImage;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.snapshot.SnapshotPath;
import org.apache.kafka.snapshot.Snapshots;

/**
 * Every view of a node's log directory as Apache's own classes read it: rows counted and digested.
 *
 * <p>{@code NODE_DIR} prints for every view and group (a partition, or a topic in the view
 * {@code partitions}) the number of rows and the sums of the four words of their digests, which no
 * order changes. {@code NODE_DIR VIEW GROUP} prints each row of one: its place and its digest.
 */
public final class ViewDigests {
    private static final TopicPartition METADATA = new TopicPartition("__cluster_metadata", 0);
    private static final int WORDS = 4;
    private static final long WORD_MASK = 0xffffffffL;

    private final CanonicalRow row = new CanonicalRow();
    private final Sink sink;

    /** Where rows go. */
    private interface Sink {
        void take(String view, String group, long place, byte[] digest);
    }

    private ViewDigests(Sink sink) {
        this.sink = sink;
    }

    private void read(Path data) throws IOException {
        for (ReplicaLog log : ReplicaLog.of(data)) {
            segments(log);
            logged(log);
            if (log.key().equals(METADATA)) {
                Path directory = data.resolve(METADATA.toString());
                metadata(log);
                partitions("partitions replay", MetadataImages.at(directory, Long.MAX_VALUE, true));
                snapshots(log, directory);
            }
        }
    }

    private void segments(ReplicaLog log) throws IOException {
        long end = log.end();
        for (Path segment : log.segments()) {
            row.with("node", log.node()).with("topic", log.key().topic()).with("partition", log.key().partition())
                .with("file", segment.getFileName().toString()).with("baseOffset", ReplicaLog.baseOffset(segment))
                .with("logBytes", Files.size(segment)).with("logStartOffset", log.checkpointedStart())
                .with("logEndOffset", end).with("highWatermark", log.highWatermark());
            sink.take("segments", log.key().toString(), ReplicaLog.baseOffset(segment), row.end());
        }
    }

    /** Batches, and of data batches the records. */
    private void logged(ReplicaLog log) throws IOException {
        CommittedBatches committed = new CommittedBatches(log.segments());
        String group = log.key().toString();
        for (Path segment : log.segments()) {
            LogFiles.walk(segment, (file, position, batch) -> {
                sink.take("batches", group, batch.baseOffset(), batch(log, file, position, batch));
                boolean isCommitted = committed.has(batch);
                if (batch.isControlBatch()) {
                    return;
                }
                for (Record record : batch) {
                    byte[] digest = record(log.key(), batch, record);
                    record("physical", log, record.offset(), digest, isCommitted);
                    if (record.offset() >= log.earliest()) {
                        record("earliest", log, record.offset(), digest, isCommitted);
                    }
                }
            });
        }
    }

    private void record(String start, ReplicaLog log, long offset, byte[] digest, boolean isCommitted) {
        sink.take("records " + start + " read_uncommitted", log.key().toString(), offset, digest);
        if (isCommitted) {
            sink.take("records " + start + " read_committed", log.key().toString(), offset, digest);
        }
    }

    private byte[] batch(ReplicaLog log, Path file, int position, DefaultRecordBatch batch) {
        return row.with("node", log.node()).with("topic", log.key().topic())
            .with("partition", log.key().partition()).with("segment", file.getFileName().toString())
            .with("position", position).with("sizeInBytes", batch.sizeInBytes())
            .with("baseOffset", batch.baseOffset()).with("lastOffset", batch.lastOffset())
            .with("count", batch.countOrNull()).with("leaderEpoch", batch.partitionLeaderEpoch())
            .with("magic", batch.magic()).with("crc", batch.checksum()).with("crcValid", batch.isValid())
            .with("compression", batch.compressionType().name).with("timestampType", batch.timestampType().id)
            .with("baseTimestamp", batch.baseTimestamp()).with("maxTimestamp", batch.maxTimestamp())
            .with("isTransactional", batch.isTransactional()).with("isControl", batch.isControlBatch())
            .with("producerId", batch.producerId()).with("producerEpoch", batch.producerEpoch())
            .with("baseSequence", batch.baseSequence()).with("status", batch.isValid() ? "ok" : "crc").end();
    }

    private byte[] record(TopicPartition key, DefaultRecordBatch batch, Record record) {
        return row.with("key", record.key()).with("value", record.value()).with("topic", key.topic())
            .with("partition", key.partition()).with("offset", record.offset())
            .with("timestamp", record.timestamp() * 1000).with("timestampType", batch.timestampType().id)
            .with("headers", record.headers()).with("leaderEpoch", batch.partitionLeaderEpoch())
            .with("magic", batch.magic()).with("compression", batch.compressionType().name)
            .with("isTransactional", batch.isTransactional()).with("producerId", batch.producerId())
            .with("producerEpoch", batch.producerEpoch()).with("baseSequence", batch.baseSequence()).end();
    }

    private void metadata(ReplicaLog log) throws IOException {
        for (Path segment : log.segments()) {
            LogFiles.walk(segment, (file, position, batch) -> {
                for (Record record : batch) {
                    row.with("offset", record.offset()).with("epoch", batch.partitionLeaderEpoch())
                        .with("isControl", batch.isControlBatch());
                    if (batch.isControlBatch()) {
                        control(record);
                    } else {
                        ApiMessageAndVersion decoded = LogFiles.decoded(record);
                        row.with("type", MetadataRecordType.fromId(decoded.message().apiKey()).name())
                            .with("version", decoded.version())
                            .withJson("json", MetadataJsonConverters.writeJson(decoded.message(), decoded.version()));
                    }
                    sink.take("metadata", log.key().toString(), record.offset(), row.end());
                }
            });
        }
    }

    private void control(Record record) {
        ControlRecordType type = ControlRecordType.parse(record.key());
        JsonNode json = ControlJson.of(type, record);
        row.with("type", type.name()).with("version", json.isNull() ? -1 : json.get("version").asInt())
            .withJson("json", json);
    }

    private void snapshots(ReplicaLog log, Path directory) throws IOException {
        for (Path file : LogFiles.named(directory, Snapshots.SUFFIX)) {
            Optional<SnapshotPath> parsed = Snapshots.parse(file);
            if (parsed.isEmpty() || parsed.get().deleted() || parsed.get().partial()) {
                continue;
            }
            OffsetAndEpoch id = parsed.get().snapshotId();
            snapshot(log, file, id);
            if (id.offset() > 0) {
                partitions("partitions snapshot " + id.offset(), MetadataImages.at(directory, id.offset(), false));
            }
        }
    }

    private void snapshot(ReplicaLog log, Path path, OffsetAndEpoch id) throws IOException {
        long[] records = {0};
        Map<ControlRecordType, JsonNode> controls = new TreeMap<>();
        LogFiles.walk(path, (file, position, batch) -> {
            if (!batch.isControlBatch()) {
                records[0] += batch.countOrNull();
                return;
            }
            for (Record record : batch) {
                ControlRecordType type = ControlRecordType.parse(record.key());
                controls.put(type, ControlJson.of(type, record));
            }
        });
        row.with("endOffset", id.offset()).with("epoch", id.epoch()).with("records", records[0])
            .with("headerVersion", field(controls.get(ControlRecordType.SNAPSHOT_HEADER), "version"))
            .with("lastContainedLogTimestamp",
                field(controls.get(ControlRecordType.SNAPSHOT_HEADER), "lastContainedLogTimestamp"))
            .with("kraftVersion", field(controls.get(ControlRecordType.KRAFT_VERSION), "kRaftVersion"))
            .withJson("voters", controls.get(ControlRecordType.KRAFT_VOTERS))
            .with("footerVersion", field(controls.get(ControlRecordType.SNAPSHOT_FOOTER), "version"))
            .with("node", log.node()).with("file", path.getFileName().toString())
            .with("sizeInBytes", Files.size(path)).with("status", "ok");
        sink.take("snapshots", log.key().toString(), id.offset(), row.end());
    }

    private static Long field(JsonNode json, String name) {
        return json == null ? null : json.get(name).longValue();
    }

    private void partitions(String view, MetadataImage image) {
        for (TopicImage topic : image.topics().topicsById().values()) {
            for (Map.Entry<Integer, PartitionRegistration> each : topic.partitions().entrySet()) {
                PartitionRegistration known = each.getValue();
                row.with("topic", topic.name()).with("topicId", topic.id().toString()).with("partition", each.getKey())
                    .with("replicas", known.replicas).with("isr", known.isr).with("leader", known.leader)
                    .with("leaderEpoch", known.leaderEpoch).with("partitionEpoch", known.partitionEpoch);
                sink.take(view, topic.name(), each.getKey(), row.end());
            }
        }
    }

    /** Rows and sums of one group. */
    private static final class Sums {
        private long rows = 0;
        private final long[] words = new long[WORDS];

        private void add(byte[] digest) {
            rows++;
            ByteBuffer bytes = ByteBuffer.wrap(digest);
            for (int at = 0; at < WORDS; at++) {
                words[at] += bytes.getInt() & WORD_MASK;
            }
        }

        private String line(List<String> viewAndGroup) throws IOException {
            ObjectNode json = Oracle.MAPPER.createObjectNode();
            json.put("view", viewAndGroup.get(0)).put("group", viewAndGroup.get(1)).put("rows", rows);
            ArrayNode all = json.putArray("sums");
            for (long word : words) {
                all.add(word);
            }
            return Oracle.MAPPER.writeValueAsString(json);
        }
    }

    /** Print the sums of a directory, or the rows of one of its groups. */
    public static void main(String[] arguments) throws IOException {
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out), false, StandardCharsets.UTF_8);
        Path data = Path.of(arguments[0]);
        if (arguments.length > 1) {
            new ViewDigests((view, group, place, digest) -> {
                if (view.equals(arguments[1]) && group.equals(arguments[2])) {
                    out.println(place + " " + HexFormat.of().formatHex(digest));
                }
            }).read(data);
        } else {
            Map<List<String>, Sums> sums = new LinkedHashMap<>();
            new ViewDigests((view, group, place, digest) ->
                sums.computeIfAbsent(List.of(view, group), known -> new Sums()).add(digest)).read(data);
            for (Map.Entry<List<String>, Sums> each : sums.entrySet()) {
                out.println(each.getValue().line(each.getKey()));
            }
        }
        out.flush();
    }
}
