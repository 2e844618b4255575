package judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseDataJsonConverter;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestDataJsonConverter;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseDataJsonConverter;
import org.apache.kafka.coordinator.group.JudgedGroups;
import org.apache.kafka.coordinator.group.JudgedStreamsGroups;

/** The steps of {@link ConsumerGroups} that are about streams groups. */
final class StreamsGroups {
    private final JudgedStreamsGroups groups;

    StreamsGroups(JudgedGroups groups) {
        this.groups = new JudgedStreamsGroups(groups);
    }

    void take(JsonNode step, ObjectNode answer) throws Exception {
        switch (step.get("step").asText()) {
            case "streams heartbeat" -> heartbeat(step, answer);
            case "streams describe" -> describe(step, answer);
            case "streams commit" -> groups.checkCommit(
                step.get("group").asText(), step.get("member").asText(), step.get("epoch").asInt(),
                step.get("topic").asText(), step.get("partition").asInt());
            case "streams fetch" -> groups.checkFetch(
                step.get("group").asText(), step.get("member").asText(), step.get("epoch").asInt());
            default -> throw new IllegalArgumentException(step.toString());
        }
    }

    private void heartbeat(JsonNode step, ObjectNode answer) throws Exception {
        var result = groups.heartbeat(
            StreamsGroupHeartbeatRequestDataJsonConverter.read(step.get("request"), (short) 0),
            step.get("client").asText(), InetAddress.getByName("127.0.0.1"));
        answer.set("response",
            StreamsGroupHeartbeatResponseDataJsonConverter.write(result.response(), (short) 0));
        ConsumerGroups.writes(answer, List.of(result.records()));
        if (!result.topics().isEmpty()) {
            ArrayNode topics = answer.putArray("topics");
            result.topics().forEach((name, partitions) -> topics.addArray().add(name).add(partitions));
        }
    }

    private void describe(JsonNode step, ObjectNode answer) {
        List<String> names = new ArrayList<>();
        step.get("groups").forEach(each -> names.add(each.asText()));
        ArrayNode described = answer.putArray("groups");
        groups.describe(names).forEach(each -> described.add(
            StreamsGroupDescribeResponseDataJsonConverter.DescribedGroupJsonConverter
                .write(each, (short) 0)));
    }
}
