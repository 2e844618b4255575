package judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.message.DeleteShareGroupStateRequestDataJsonConverter;
import org.apache.kafka.common.message.DeleteShareGroupStateResponseDataJsonConverter;
import org.apache.kafka.common.message.InitializeShareGroupStateRequestDataJsonConverter;
import org.apache.kafka.common.message.InitializeShareGroupStateResponseDataJsonConverter;
import org.apache.kafka.common.message.ReadShareGroupStateRequestDataJsonConverter;
import org.apache.kafka.common.message.ReadShareGroupStateResponseDataJsonConverter;
import org.apache.kafka.common.message.ReadShareGroupStateSummaryRequestDataJsonConverter;
import org.apache.kafka.common.message.ReadShareGroupStateSummaryResponseDataJsonConverter;
import org.apache.kafka.common.message.WriteShareGroupStateRequestDataJsonConverter;
import org.apache.kafka.common.message.WriteShareGroupStateResponseDataJsonConverter;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.share.PersisterStateBatchCombiner;
import org.apache.kafka.coordinator.share.ShareCoordinatorConfig;
import org.apache.kafka.coordinator.share.ShareCoordinatorRecordSerde;
import org.apache.kafka.coordinator.share.ShareCoordinatorShard;
import org.apache.kafka.coordinator.share.metrics.ShareCoordinatorMetrics;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.server.share.persister.PersisterStateBatch;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Apache's share coordinator of one partition behind one JSON line per step; the first line has
 * settings and topics. Every answer has the response, the records of the step as pairs of
 * hexadecimal texts, and the offset below which the log may be cut.
 */
public final class ShareStates {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();
    private static final short NEWEST = 1;
    private static final short ONLY = 0;

    private final StoryClock clock = new StoryClock();
    private final ShareCoordinatorRecordSerde serde = new ShareCoordinatorRecordSerde();
    private final List<CoordinatorRecord> log = new ArrayList<>();
    private final ShareCoordinatorConfig config;
    private final KRaftCoordinatorMetadataImage image;
    private ShareCoordinatorShard shard;

    private ShareStates(JsonNode start) {
        config = new ShareCoordinatorConfig(new AbstractConfig(
            ShareCoordinatorConfig.CONFIG_DEF,
            Map.of(
                ShareCoordinatorConfig.SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT_CONFIG,
                start.get("updates").asText(),
                ShareCoordinatorConfig.COLD_PARTITION_SNAPSHOT_INTERVAL_MS_CONFIG,
                start.get("coldMs").asText()),
            false));
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        start.get("topics").properties().forEach(each -> {
            Uuid id = Uuid.fromString(each.getKey());
            delta.replay(new TopicRecord().setName("t" + each.getKey()).setTopicId(id));
            for (int partition = 0; partition < each.getValue().asInt(); partition++) {
                delta.replay(new PartitionRecord().setTopicId(id).setPartitionId(partition)
                    .setReplicas(List.of(1)).setIsr(List.of(1)).setLeader(1));
            }
        });
        image = new KRaftCoordinatorMetadataImage(
            delta.apply(new MetadataProvenance(1, 0, 0, true)));
        load();
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        ShareStates states = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode step = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            switch (step.get("step").asText()) {
                case "start" -> states = new ShareStates(step);
                case "combine" -> answer.set("batches", combined(step));
                default -> states.take(step, answer);
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    private void load() {
        SnapshotRegistry snapshots = new SnapshotRegistry(new LogContext());
        shard = new ShareCoordinatorShard.Builder(config)
            .withLogContext(new LogContext())
            .withSnapshotRegistry(snapshots)
            .withTime(clock)
            .withCoordinatorMetrics(new ShareCoordinatorMetrics())
            .withTopicPartition(new TopicPartition("__share_group_state", 0))
            .build();
        for (int offset = 0; offset < log.size(); offset++) {
            shard.replay(offset, -1L, (short) -1, log.get(offset));
        }
        shard.onLoaded(image);
    }

    private void take(JsonNode step, ObjectNode answer) {
        clock.set(step.get("nowMs").asLong());
        JsonNode request = step.get("request");
        switch (step.get("step").asText()) {
            case "initialize" -> answer.set("response",
                InitializeShareGroupStateResponseDataJsonConverter.write(
                    written(shard.initializeState(
                        InitializeShareGroupStateRequestDataJsonConverter.read(request, ONLY)), answer),
                    ONLY));
            case "read" -> answer.set("response",
                ReadShareGroupStateResponseDataJsonConverter.write(
                    written(shard.readStateAndMaybeUpdateLeaderEpoch(
                        ReadShareGroupStateRequestDataJsonConverter.read(request, ONLY)), answer),
                    ONLY));
            case "write" -> answer.set("response",
                WriteShareGroupStateResponseDataJsonConverter.write(
                    written(shard.writeState(
                        WriteShareGroupStateRequestDataJsonConverter.read(request, NEWEST)), answer),
                    NEWEST));
            case "delete" -> answer.set("response",
                DeleteShareGroupStateResponseDataJsonConverter.write(
                    written(shard.deleteState(
                        DeleteShareGroupStateRequestDataJsonConverter.read(request, ONLY)), answer),
                    ONLY));
            case "read summary" -> answer.set("response",
                ReadShareGroupStateSummaryResponseDataJsonConverter.write(
                    written(shard.readStateSummary(
                        ReadShareGroupStateSummaryRequestDataJsonConverter.read(request, NEWEST)), answer),
                    NEWEST));
            case "cold" -> written(shard.snapshotColdPartitions(), answer);
            case "topic" -> written(
                shard.maybeCleanupShareState(Set.of(Uuid.fromString(step.get("topic").asText()))), answer);
            case "load" -> load();
            default -> throw new IllegalArgumentException(step.toString());
        }
        answer.put("needed", shard.lastRedundantOffset().response().orElse(-1L));
    }

    private <T> T written(CoordinatorResult<T, CoordinatorRecord> result, ObjectNode answer) {
        ArrayNode records = answer.putArray("records");
        for (CoordinatorRecord record : result.records()) {
            shard.replay(log.size(), -1L, (short) -1, record);
            log.add(record);
            byte[] value = serde.serializeValue(record);
            records.addArray()
                .add(HEX.formatHex(serde.serializeKey(record)))
                .add(value == null ? null : HEX.formatHex(value));
        }
        return result.response();
    }

    private static ArrayNode combined(JsonNode step) {
        ArrayNode found = JSON.createArrayNode();
        new PersisterStateBatchCombiner(
            batches(step.get("stored")), batches(step.get("new")), step.get("start").asLong()
        ).combineStateBatches().forEach(each -> found.addArray()
            .add(each.firstOffset()).add(each.lastOffset())
            .add(each.deliveryState()).add(each.deliveryCount()));
        return found;
    }

    private static List<PersisterStateBatch> batches(JsonNode listed) {
        List<PersisterStateBatch> found = new ArrayList<>();
        listed.forEach(each -> found.add(new PersisterStateBatch(
            each.get(0).asLong(), each.get(1).asLong(),
            (byte) each.get(2).asInt(), (short) each.get(3).asInt())));
        return found;
    }
}
