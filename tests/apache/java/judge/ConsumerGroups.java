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
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseDataJsonConverter;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestDataJsonConverter;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseDataJsonConverter;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.JudgedGroups;

/**
 * Apache's consumer groups behind one JSON line per step; the first line has the settings. Every
 * answer has the response or an error, and the records of each write as pairs of hexadecimal texts.
 */
public final class ConsumerGroups {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    private final JudgedGroups groups;

    private ConsumerGroups(JudgedGroups groups) {
        this.groups = groups;
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
                case "advance" -> writes(answer, groups.advance(step.get("ms").asLong()));
                case "tasks" -> writes(answer, groups.runTasks());
                case "delete" -> writes(answer, List.of(groups.delete(step.get("group").asText())));
                case "describe" -> describe(step, answer);
                case "load" -> load(step);
                default -> throw new IllegalArgumentException(step.toString());
            }
        } catch (ApiException error) {
            answer.put("error", Errors.forException(error).code());
            answer.put("message", error.getMessage());
        }
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

    private void writes(ObjectNode answer, List<List<CoordinatorRecord>> writes) {
        ArrayNode all = answer.putArray("writes");
        for (List<CoordinatorRecord> write : writes) {
            if (write.isEmpty()) {
                continue;
            }
            ArrayNode records = all.addArray();
            for (CoordinatorRecord record : write) {
                byte[] value = groups.value(record);
                records.addArray()
                    .add(HEX.formatHex(groups.key(record)))
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
