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
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.coordinator.group.modern.TopicIds;

/**
 * Apache's server assignors behind one JSON line per group: topics, members in order with names and
 * former targets. The answer lists each member's target in the order of Apache's maps.
 */
public final class Assignors {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, PartitionAssignor> ASSIGNORS = Map.of(
        "uniform", new UniformAssignor(), "range", new RangeAssignor(), "simple", new SimpleAssignor());

    private Assignors() { }

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(JSON.writeValueAsString(assign(JSON.readTree(line))));
        }
    }

    private static ObjectNode assign(JsonNode group) {
        Topics topics = new Topics();
        for (JsonNode topic : group.get("topics")) {
            Uuid id = Uuid.fromString(topic.get(1).asText());
            topics.ids.put(topic.get(0).asText(), id);
            topics.names.put(id, topic.get(0).asText());
            topics.partitions.put(id, topic.get(2).asInt());
        }
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
        for (JsonNode member : group.get("members")) {
            String memberId = member.get("id").asText();
            Map<Uuid, Set<Integer>> target = new HashMap<>();
            for (JsonNode entry : member.get("target")) {
                Uuid id = Uuid.fromString(entry.get(0).asText());
                List<Integer> partitions = new ArrayList<>();
                entry.get(1).forEach(each -> partitions.add(each.asInt()));
                partitions.forEach(
                    each -> inverted.computeIfAbsent(id, __ -> new HashMap<>()).put(each, memberId));
                target.put(id, new HashSet<>(partitions));
            }
            List<String> names = new ArrayList<>();
            member.get("names").forEach(each -> names.add(each.asText()));
            JsonNode instance = member.get("instance");
            members.put(memberId, new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(),
                instance.isNull() ? Optional.empty() : Optional.of(instance.asText()),
                new TopicIds(new HashSet<>(names), topics),
                new Assignment(target)));
        }
        GroupSpecImpl spec = new GroupSpecImpl(
            Collections.unmodifiableMap(members),
            group.get("homogeneous").asBoolean()
                ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS,
            inverted,
            assignable(group.get("assignable")));
        PartitionAssignor assignor = ASSIGNORS.get(group.get("assignor").asText());
        long started = System.nanoTime();
        ObjectNode answer = JSON.createObjectNode();
        GroupAssignment assigned;
        try {
            assigned = assignor.assign(spec, topics);
        } catch (RuntimeException failed) {
            return answer.putNull("targets");
        }
        long nanoseconds = System.nanoTime() - started;
        answer.put("microseconds", nanoseconds / 1_000);
        ObjectNode targets = answer.putObject("targets");
        assigned.members().forEach((memberId, made) -> {
            ArrayNode listed = targets.putArray(memberId);
            made.partitions().forEach((id, partitions) -> {
                ArrayNode numbers = listed.addArray().add(id.toString()).addArray();
                partitions.forEach(numbers::add);
            });
        });
        return answer;
    }

    /** The partitions whose state is initialised, in a share group. */
    private static Optional<Map<Uuid, Set<Integer>>> assignable(JsonNode topics) {
        if (topics == null) {
            return Optional.empty();
        }
        Map<Uuid, Set<Integer>> found = new HashMap<>();
        topics.properties().forEach(each -> {
            Set<Integer> partitions = new HashSet<>();
            each.getValue().forEach(number -> partitions.add(number.asInt()));
            found.put(Uuid.fromString(each.getKey()), partitions);
        });
        return Optional.of(found);
    }

    private static final class Topics implements TopicIds.TopicResolver, SubscribedTopicDescriber {
        private final Map<String, Uuid> ids = new HashMap<>();
        private final Map<Uuid, String> names = new HashMap<>();
        private final Map<Uuid, Integer> partitions = new HashMap<>();

        @Override
        public CoordinatorMetadataImage image() {
            return CoordinatorMetadataImage.EMPTY;
        }

        @Override
        public String name(Uuid id) {
            return names.get(id);
        }

        @Override
        public Uuid id(String name) {
            return ids.get(name);
        }

        @Override
        public void clear() { }

        @Override
        public int numPartitions(Uuid id) {
            return partitions.getOrDefault(id, -1);
        }

        @Override
        public Set<String> racksForPartition(Uuid id, int partition) {
            return Set.of();
        }
    }
}
