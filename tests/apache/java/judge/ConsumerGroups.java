package judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseDataJsonConverter;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestDataJsonConverter;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseDataJsonConverter;
import org.apache.kafka.common.message.HeartbeatRequestDataJsonConverter;
import org.apache.kafka.common.message.HeartbeatResponseDataJsonConverter;
import org.apache.kafka.common.message.JoinGroupRequestDataJsonConverter;
import org.apache.kafka.common.message.JoinGroupResponseDataJsonConverter;
import org.apache.kafka.common.message.LeaveGroupRequestDataJsonConverter;
import org.apache.kafka.common.message.LeaveGroupResponseDataJsonConverter;
import org.apache.kafka.common.message.SyncGroupRequestDataJsonConverter;
import org.apache.kafka.common.message.SyncGroupResponseDataJsonConverter;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.JudgedGroups;

/**
 * Apache's consumer, share and streams groups behind one JSON line per step; the first line has the settings. Every
 * answer has the response or an error, and the records of each write as pairs of hexadecimal texts.
 */
public final class ConsumerGroups {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    private final JudgedGroups groups;
    private final ShareGroups shareGroups;
    private final StreamsGroups streamsGroups;
    private final Map<Integer, CompletableFuture<JsonNode>> waiting = new LinkedHashMap<>();

    private ConsumerGroups(JudgedGroups groups) {
        this.groups = groups;
        shareGroups = new ShareGroups(groups);
        streamsGroups = new StreamsGroups(groups);
    }

    public static void main(String[] arguments) throws Throwable {
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        ConsumerGroups judged = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode step = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            if (step.get("step").asText().equals("start")) {
                Map<String, String> settings = new HashMap<>();
                step.get("settings").properties().forEach(
                    each -> settings.put(each.getKey(), each.getValue().asText()));
                judged = new ConsumerGroups(new JudgedGroups(settings, step.get("nowMs").asLong()));
            } else {
                judged.take(step, answer);
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    private void take(JsonNode step, ObjectNode answer) throws Throwable {
        try {
            switch (step.get("step").asText()) {
                case "broker" -> groups.broker(step.get("id").asInt(), text(step.get("rack")));
                case "topic" -> groups.topic(
                    step.get("name").asText(), uuid(step), integers(step.get("replicas")));
                case "delete topic" -> groups.deleteTopic(uuid(step));
                case "heartbeat" -> heartbeat(step, answer);
                case "classic join" -> join(step, answer);
                case "classic sync" -> sync(step, answer);
                case "classic heartbeat" -> classicHeartbeat(step, answer);
                case "classic leave" -> classicLeave(step, answer);
                case "list" -> list(answer);
                case "advance" -> writes(answer, groups.advance(step.get("ms").asLong()));
                case "tasks" -> writes(answer, groups.runTasks());
                case "delete" -> writes(answer, List.of(groups.delete(step.get("group").asText())));
                case "describe" -> describe(step, answer);
                case "load" -> load(step);
                default -> {
                    if (step.get("step").asText().startsWith("streams ")) {
                        streamsGroups.take(step, answer);
                    } else {
                        shareGroups.take(step, answer);
                    }
                }
            }
        } catch (ApiException error) {
            answer.put("error", Errors.forException(error).code());
            answer.put("message", error.getMessage());
        } catch (RuntimeException error) {
            answer.put("error", Errors.UNKNOWN_SERVER_ERROR.code());
            answer.putNull("message");
        }
        completed(answer);
    }

    /** What was answered to requests that waited, by their numbers. */
    private void completed(ObjectNode answer) throws Exception {
        List<Integer> done = waiting.keySet().stream()
            .filter(each -> waiting.get(each).isDone()).sorted().toList();
        if (!done.isEmpty()) {
            ObjectNode all = answer.putObject("completed");
            for (int each : done) {
                all.set(Integer.toString(each), waiting.remove(each).get());
            }
        }
    }

    private <T> void waitFor(JsonNode step, CompletableFuture<T> future, Function<T, JsonNode> asJson) {
        waiting.put(step.get("number").asInt(), future.thenApply(asJson));
    }

    private void join(JsonNode step, ObjectNode answer) {
        short version = (short) step.get("version").asInt();
        var future = new CompletableFuture<org.apache.kafka.common.message.JoinGroupResponseData>();
        writes(answer, List.of(groups.join(
            JoinGroupRequestDataJsonConverter.read(step.get("request"), version),
            step.get("client").asText(), version, future)));
        waitFor(step, future, each -> JoinGroupResponseDataJsonConverter.write(each, version));
    }

    private void sync(JsonNode step, ObjectNode answer) {
        short version = (short) step.get("version").asInt();
        var future = new CompletableFuture<org.apache.kafka.common.message.SyncGroupResponseData>();
        writes(answer, List.of(groups.sync(
            SyncGroupRequestDataJsonConverter.read(step.get("request"), version), version, future)));
        waitFor(step, future, each -> SyncGroupResponseDataJsonConverter.write(each, version));
    }

    private void classicHeartbeat(JsonNode step, ObjectNode answer) {
        short version = (short) step.get("version").asInt();
        var written = groups.classicHeartbeat(
            HeartbeatRequestDataJsonConverter.read(step.get("request"), version), version);
        answer.set("response", HeartbeatResponseDataJsonConverter.write(written.response(), version));
        writes(answer, List.of(written.records()));
    }

    private void classicLeave(JsonNode step, ObjectNode answer) {
        short version = (short) step.get("version").asInt();
        var written = groups.classicLeave(
            LeaveGroupRequestDataJsonConverter.read(step.get("request"), version), version);
        answer.set("response", LeaveGroupResponseDataJsonConverter.write(written.response(), version));
        writes(answer, List.of(written.records()));
    }

    private void list(ObjectNode answer) {
        ArrayNode listed = answer.putArray("listed");
        groups.list().forEach(each -> listed.addArray()
            .add(each.groupId()).add(each.groupType()).add(each.groupState()).add(each.protocolType()));
    }

    private void heartbeat(JsonNode step, ObjectNode answer) throws Exception {
        short version = (short) step.get("version").asInt();
        var written = groups.heartbeat(
            ConsumerGroupHeartbeatRequestDataJsonConverter.read(step.get("request"), version),
            step.get("client").asText(), InetAddress.getByName("127.0.0.1"), version);
        answer.set("response",
            ConsumerGroupHeartbeatResponseDataJsonConverter.write(written.response(), version));
        writes(answer, List.of(written.records()));
    }

    private void describe(JsonNode step, ObjectNode answer) {
        List<String> names = new ArrayList<>();
        step.get("groups").forEach(each -> names.add(each.asText()));
        ArrayNode described = answer.putArray("groups");
        groups.describe(names).forEach(each -> described.add(
            ConsumerGroupDescribeResponseDataJsonConverter.DescribedGroupJsonConverter
                .write(each, (short) 1)));
    }

    private void load(JsonNode step) {
        for (JsonNode record : step.get("records")) {
            JsonNode value = record.get(1);
            groups.load(HEX.parseHex(record.get(0).asText()),
                value.isNull() ? null : HEX.parseHex(value.asText()));
        }
        groups.loaded();
    }

    static void writes(ObjectNode answer, List<List<CoordinatorRecord>> writes) {
        ArrayNode all = answer.putArray("writes");
        for (List<CoordinatorRecord> write : writes) {
            if (write.isEmpty()) {
                continue;
            }
            ArrayNode records = all.addArray();
            for (CoordinatorRecord record : write) {
                byte[] value = JudgedGroups.value(record);
                records.addArray()
                    .add(HEX.formatHex(JudgedGroups.key(record)))
                    .add(value == null ? null : HEX.formatHex(value));
            }
        }
    }

    private static Uuid uuid(JsonNode step) {
        return Uuid.fromString(step.get("id").asText());
    }

    private static List<Integer> integers(JsonNode array) {
        List<Integer> found = new ArrayList<>();
        array.forEach(each -> found.add(each.asInt()));
        return found;
    }

    private static String text(JsonNode node) {
        return node.isNull() ? null : node.asText();
    }
}
