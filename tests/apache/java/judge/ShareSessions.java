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
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import kafka.server.share.SharePartitionManager;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ShareFetchResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.ShareFetchResponse;
import org.apache.kafka.server.share.ErroneousAndValidPartitionData;
import org.apache.kafka.server.share.ShareGroupListener;
import org.apache.kafka.server.share.context.ShareFetchContext;
import org.apache.kafka.server.share.fetch.PartitionRotateStrategy;
import org.apache.kafka.server.share.session.ShareSessionCache;

/**
 * Apache's share sessions behind one JSON line per step. Partitions are named by topic and number;
 * a topic whose name begins with "?" does not exist.
 */
public final class ShareSessions {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final ShareSessionCache cache;
    private final SharePartitionManager manager;
    private final Map<Integer, ShareFetchContext> contexts = new HashMap<>();
    private ArrayNode left = JSON.createArrayNode();
    private ArrayNode empty = JSON.createArrayNode();

    private ShareSessions(int limit) {
        cache = new ShareSessionCache(limit);
        manager = new SharePartitionManager(
            null, new StoryClock(), cache, 30_000, 5, 2_000, 1_000L, null, null, null);
        cache.registerShareGroupListener(new ShareGroupListener() {
            @Override
            public void onMemberLeave(String groupId, String memberId) {
                left.add(groupId + "/" + memberId);
                manager.releaseSession(groupId, memberId);
            }

            @Override
            public void onGroupEmpty(String groupId) {
                empty.add(groupId);
            }
        });
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        ShareSessions sessions = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode step = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            if (step.get("step").asText().equals("start")) {
                sessions = new ShareSessions(step.get("limit").asInt());
            } else {
                sessions.take(step, answer);
            }
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
        }
        System.exit(0);
    }

    private void take(JsonNode step, ObjectNode answer) {
        try {
            switch (step.get("step").asText()) {
                case "fetch" -> fetch(step, answer);
                case "answer" -> answer(step, answer);
                case "acknowledge" -> manager.acknowledgeSessionUpdate(
                    step.get("group").asText(), step.get("member").asText(), step.get("epoch").asInt());
                case "close" -> answer.put("error", manager.releaseSession(
                    step.get("group").asText(), step.get("member").asText()).isCompletedExceptionally());
                case "disconnect" -> disconnect(step, answer);
                default -> throw new IllegalArgumentException(step.toString());
            }
        } catch (IllegalArgumentException wrong) {
            throw wrong;
        } catch (RuntimeException refused) {
            answer.put("error", Errors.forException(refused).code());
        }
        answer.put("sessions", cache.size()).put("partitions", cache.totalPartitions());
    }

    private void fetch(JsonNode step, ObjectNode answer) {
        int epoch = step.get("epoch").asInt();
        ShareFetchContext context = manager.newContext(
            step.get("group").asText(), partitions(step.get("wanted")), partitions(step.get("forget")),
            step.get("member").asText(), epoch, step.get("acks").asBoolean(),
            step.get("connection").asText());
        contexts.put(step.get("number").asInt(), context);
        ErroneousAndValidPartitionData found = context.getErroneousAndValidTopicIdPartitions();
        List<TopicIdPartition> rotated = PartitionRotateStrategy.rotateRoundRobin(
            found.validTopicIdPartitions(), new PartitionRotateStrategy.PartitionRotateMetadata(epoch));
        ArrayNode valid = answer.putArray("valid");
        rotated.forEach(each -> valid.add(name(each)));
        answer.put("unknown", found.erroneous().size());
    }

    private void answer(JsonNode step, ObjectNode answer) {
        LinkedHashMap<TopicIdPartition, ShareFetchResponseData.PartitionData> updates =
            new LinkedHashMap<>();
        for (JsonNode each : step.get("results")) {
            TopicIdPartition key = partition(each.get(0).asText());
            int size = each.get(1).asInt();
            updates.put(key, new ShareFetchResponseData.PartitionData()
                .setPartitionIndex(key.partition())
                .setErrorCode((short) each.get(2).asInt())
                .setRecords(size == 0 ? MemoryRecords.EMPTY
                    : MemoryRecords.readableRecords(ByteBuffer.allocate(size))));
        }
        ShareFetchContext context = contexts.remove(step.get("number").asInt());
        ShareFetchResponse response = step.get("throttled").asBoolean()
            ? context.throttleResponse(5)
            : context.updateAndGenerateResponseData("", "", updates);
        answer.put("error", response.data().errorCode());
        ArrayNode listed = answer.putArray("listed");
        response.data().responses().forEach(topic -> topic.partitions().forEach(
            each -> listed.add(text(topic.topicId()) + "-" + each.partitionIndex())));
    }

    private void disconnect(JsonNode step, ObjectNode answer) {
        left = answer.putArray("left");
        empty = answer.putArray("empty");
        cache.connectionDisconnectListener().onDisconnect(step.get("connection").asText());
    }

    private static List<TopicIdPartition> partitions(JsonNode names) {
        List<TopicIdPartition> found = new ArrayList<>();
        names.forEach(each -> found.add(partition(each.asText())));
        return found;
    }

    private static TopicIdPartition partition(String name) {
        int dash = name.lastIndexOf('-');
        String topic = name.substring(0, dash);
        return new TopicIdPartition(id(topic), new TopicPartition(
            topic.startsWith("?") ? null : topic, Integer.parseInt(name.substring(dash + 1))));
    }

    private static String name(TopicIdPartition partition) {
        return text(partition.topicId()) + "-" + partition.partition();
    }

    private static Uuid id(String topic) {
        byte[] padded = new byte[16];
        byte[] bytes = topic.getBytes(StandardCharsets.UTF_8);
        for (int place = 0; place < 16; place++) {
            padded[place] = place < bytes.length ? bytes[place] : (byte) '.';
        }
        ByteBuffer buffer = ByteBuffer.wrap(padded);
        return new Uuid(buffer.getLong(), buffer.getLong());
    }

    private static String text(Uuid id) {
        ByteBuffer buffer = ByteBuffer.allocate(16);
        buffer.putLong(id.getMostSignificantBits()).putLong(id.getLeastSignificantBits());
        return new String(buffer.array(), StandardCharsets.UTF_8).replaceAll("\\.+$", "");
    }
}
