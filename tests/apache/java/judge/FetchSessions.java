package judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.FetchMetadata;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.FetchContext;
import org.apache.kafka.server.FetchManager;
import org.apache.kafka.server.FetchSession;
import org.apache.kafka.server.FetchSessionCacheShard;

/**
 * Apache's fetch sessions behind one JSON line per fetch. A line carries the request and what every
 * partition would answer; the program reads as simply as a broker can, ten bytes a record, in the
 * order of the session, while bytes are left. It answers with error, session id and the partitions
 * listed.
 */
public final class FetchSessions {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int RECORD_BYTES = 10;
    private static final int SHARDS = 8;

    private final Clock clock = new Clock();
    private final FetchManager manager;

    private FetchSessions(int slots, long evictionMs) {
        List<FetchSessionCacheShard> shards = new ArrayList<>();
        for (int number = 0; number < SHARDS; number++) {
            shards.add(new FetchSessionCacheShard(
                slots / SHARDS, evictionMs, Integer.MAX_VALUE / SHARDS, number));
        }
        manager = new FetchManager(clock, new FetchSession.FetchSessionCache(shards));
    }

    public static void main(String[] arguments) throws IOException {
        FetchSessions sessions =
            new FetchSessions(Integer.parseInt(arguments[0]), Long.parseLong(arguments[1]));
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(JSON.writeValueAsString(sessions.fetch(JSON.readTree(line))));
        }
    }

    private ObjectNode fetch(JsonNode asked) {
        clock.nowMs = asked.get("now").asLong();
        boolean byId = asked.get("version").asInt() >= 13;
        Map<Uuid, String> names = new LinkedHashMap<>();
        asked.get("names").forEach(name -> names.put(idOf(name.asText()), name.asText()));
        Map<TopicIdPartition, FetchRequest.PartitionData> wanted = new LinkedHashMap<>();
        for (JsonNode each : asked.get("wanted")) {
            TopicIdPartition key = key(each, byId, names);
            wanted.put(key, new FetchRequest.PartitionData(
                key.topicId(), each.get(2).asLong(), -1L, each.get(3).asInt(), Optional.empty()));
        }
        List<TopicIdPartition> forgotten = new ArrayList<>();
        asked.get("forget").forEach(each -> forgotten.add(key(each, byId, names)));
        FetchContext context = manager.newContext(
            (short) asked.get("version").asInt(),
            new FetchMetadata(asked.get("session").asInt(), asked.get("epoch").asInt()),
            asked.get("follower").asBoolean(), wanted, forgotten, names);
        FetchResponse response =
            context.updateAndGenerateResponseData(read(context, asked), List.of());
        return answer(response.data());
    }

    private LinkedHashMap<TopicIdPartition, FetchResponseData.PartitionData> read(
            FetchContext context, JsonNode asked) {
        LinkedHashMap<TopicIdPartition, FetchResponseData.PartitionData> found =
            new LinkedHashMap<>();
        int limit = asked.get("max_bytes").asInt();
        int[] left = {limit};
        context.foreachPartition((key, params) -> {
            JsonNode state = key.topic() == null
                ? null : asked.get("states").get(key.topic() + "-" + key.partition());
            FetchResponseData.PartitionData data = new FetchResponseData.PartitionData()
                .setPartitionIndex(key.partition()).setRecords(MemoryRecords.EMPTY);
            if (state == null || state.get(2).asInt() != 0) {
                Errors unknown = key.topic() == null
                    ? Errors.UNKNOWN_TOPIC_ID : Errors.UNKNOWN_TOPIC_OR_PARTITION;
                int code = state == null ? unknown.code() : state.get(2).asInt();
                found.put(key, data.setErrorCode((short) code).setHighWatermark(-1));
                return;
            }
            long unread = Math.max(0, state.get(0).asLong() - params.fetchOffset) * RECORD_BYTES;
            long allowed = Math.min(unread, Math.min(left[0], params.maxBytes));
            long size = allowed - allowed % RECORD_BYTES;
            if (size == 0 && left[0] == limit && unread > 0) {
                size = RECORD_BYTES;
            }
            left[0] = (int) Math.max(0, left[0] - size);
            data.setHighWatermark(state.get(0).asLong()).setLogStartOffset(state.get(1).asLong());
            if (size > 0) {
                data.setRecords(MemoryRecords.readableRecords(ByteBuffer.allocate((int) size)));
            }
            found.put(key, data);
        });
        return found;
    }

    private static ObjectNode answer(FetchResponseData data) {
        ObjectNode answer = JSON.createObjectNode();
        answer.put("error", data.errorCode()).put("session", data.sessionId());
        ArrayNode listed = answer.putArray("listed");
        data.responses().forEach(topic -> {
            ArrayNode group = listed.addArray();
            group.add(topic.topicId().equals(Uuid.ZERO_UUID) ? topic.topic() : textOf(topic.topicId()));
            ArrayNode partitions = group.addArray();
            topic.partitions().forEach(each -> partitions.addArray()
                .add(each.partitionIndex()).add(each.errorCode())
                .add(FetchResponse.recordsSize(each)));
        });
        return answer;
    }

    private static TopicIdPartition key(JsonNode each, boolean byId, Map<Uuid, String> names) {
        String topic = each.get(0).asText();
        Uuid id = byId ? idOf(topic) : Uuid.ZERO_UUID;
        return new TopicIdPartition(
            id, new TopicPartition(byId ? names.get(id) : topic, each.get(1).asInt()));
    }

    private static Uuid idOf(String topic) {
        StringBuilder padded = new StringBuilder(topic);
        while (padded.length() < 16) {
            padded.append('.');
        }
        ByteBuffer bytes = ByteBuffer.wrap(padded.toString().getBytes(StandardCharsets.US_ASCII));
        return new Uuid(bytes.getLong(), bytes.getLong());
    }

    private static String textOf(Uuid id) {
        byte[] bytes = ByteBuffer.allocate(16)
            .putLong(id.getMostSignificantBits()).putLong(id.getLeastSignificantBits()).array();
        String padded = new String(bytes, StandardCharsets.US_ASCII);
        return padded.replace(".", "");
    }

    private static final class Clock implements Time {
        private long nowMs;

        @Override
        public long milliseconds() {
            return nowMs;
        }

        @Override
        public long nanoseconds() {
            return nowMs * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            nowMs += ms;
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }
}
