package judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterShareGroupOffsetsRequestDataJsonConverter;
import org.apache.kafka.common.message.AlterShareGroupOffsetsResponseDataJsonConverter;
import org.apache.kafka.common.message.DeleteShareGroupOffsetsRequestDataJsonConverter;
import org.apache.kafka.common.message.ShareGroupDescribeResponseDataJsonConverter;
import org.apache.kafka.common.message.ShareGroupHeartbeatRequestDataJsonConverter;
import org.apache.kafka.common.message.ShareGroupHeartbeatResponseDataJsonConverter;
import org.apache.kafka.coordinator.group.JudgedGroups;
import org.apache.kafka.coordinator.group.JudgedShareGroups;

/** The steps of {@link ConsumerGroups} that are about share groups. */
final class ShareGroups {
    private final JudgedShareGroups groups;

    ShareGroups(JudgedGroups groups) {
        this.groups = new JudgedShareGroups(groups);
    }

    void take(JsonNode step, ObjectNode answer) throws Exception {
        switch (step.get("step").asText()) {
            case "share heartbeat" -> heartbeat(step, answer);
            case "share begun" -> ConsumerGroups.writes(answer, List.of(groups.begun(
                step.get("group").asText(), partitions(step.get("topics")), step.get("ok").asBoolean())));
            case "share describe" -> describe(step, answer);
            case "share alter" -> alter(step, answer);
            case "share delete offsets" -> deleteOffsets(step, answer);
            case "share deleted offsets" -> ConsumerGroups.writes(answer, List.of(
                groups.deletedOffsets(step.get("group").asText(), names(step.get("topics")))));
            case "share delete" -> {
                var result = groups.delete(step.get("group").asText());
                ConsumerGroups.writes(answer, List.of(result.records()));
                asked(answer, result.asked());
            }
            case "share clean up" -> ConsumerGroups.writes(answer, List.of(
                groups.cleanUp(Set.of(Uuid.fromString(step.get("id").asText())))));
            default -> throw new IllegalArgumentException(step.toString());
        }
    }

    private void heartbeat(JsonNode step, ObjectNode answer) throws Exception {
        var result = groups.heartbeat(
            ShareGroupHeartbeatRequestDataJsonConverter.read(step.get("request"), (short) 1),
            step.get("client").asText(), InetAddress.getByName("127.0.0.1"));
        answer.set("response",
            ShareGroupHeartbeatResponseDataJsonConverter.write(result.response(), (short) 1));
        ConsumerGroups.writes(answer, List.of(result.records()));
        asked(answer, result.asked());
    }

    private void describe(JsonNode step, ObjectNode answer) {
        List<String> names = new ArrayList<>();
        step.get("groups").forEach(each -> names.add(each.asText()));
        ArrayNode described = answer.putArray("groups");
        groups.describe(names).forEach(each -> described.add(
            ShareGroupDescribeResponseDataJsonConverter.DescribedGroupJsonConverter
                .write(each, (short) 1)));
    }

    private void alter(JsonNode step, ObjectNode answer) {
        var request = AlterShareGroupOffsetsRequestDataJsonConverter.read(step.get("request"), (short) 0);
        var result = groups.alter(request.groupId(), request.topics());
        answer.set("altered",
            AlterShareGroupOffsetsResponseDataJsonConverter.write(result.response(), (short) 0));
        ConsumerGroups.writes(answer, List.of(result.records()));
        asked(answer, result.asked());
    }

    private void deleteOffsets(JsonNode step, ObjectNode answer) {
        var result = groups.deleteOffsets(
            DeleteShareGroupOffsetsRequestDataJsonConverter.read(step.get("request"), (short) 0));
        ArrayNode refused = answer.putArray("refused");
        result.response().forEach(each -> refused.addArray()
            .add(each.topicName()).add(each.errorCode()).add(each.errorMessage()));
        ConsumerGroups.writes(answer, List.of(result.records()));
        asked(answer, result.asked());
    }

    private static void asked(ObjectNode answer, JudgedShareGroups.Asked asked) {
        if (asked == null || asked.topics().isEmpty()) {
            return;
        }
        ArrayNode all = answer.putArray("asked");
        asked.topics().forEach((id, partitions) -> partitions.forEach((partition, values) -> {
            ArrayNode one = all.addArray().add(id).add(partition);
            values.forEach(one::add);
        }));
    }

    private static Map<Uuid, Set<Integer>> partitions(JsonNode topics) {
        Map<Uuid, Set<Integer>> found = new HashMap<>();
        for (JsonNode topic : topics) {
            Set<Integer> partitions = new HashSet<>();
            topic.get(1).forEach(each -> partitions.add(each.asInt()));
            found.put(Uuid.fromString(topic.get(0).asText()), partitions);
        }
        return found;
    }

    private static Map<Uuid, String> names(JsonNode topics) {
        Map<Uuid, String> found = new HashMap<>();
        topics.forEach(each -> found.put(Uuid.fromString(each.get(0).asText()), each.get(1).asText()));
        return found;
    }
}
