package judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorOperationExceptionHelper;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.generated.StreamsGroupTopologyValue;
import org.apache.kafka.coordinator.group.generated.StreamsGroupTopologyValueJsonConverter;
import org.apache.kafka.coordinator.group.streams.CurrentAssignmentBuilder;
import org.apache.kafka.coordinator.group.streams.MemberState;
import org.apache.kafka.coordinator.group.streams.StreamsGroup;
import org.apache.kafka.coordinator.group.streams.StreamsGroupMember;
import org.apache.kafka.coordinator.group.streams.StreamsTopology;
import org.apache.kafka.coordinator.group.streams.TasksTuple;
import org.apache.kafka.coordinator.group.streams.TasksTupleWithEpochs;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentMemberSpec;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.TaskAssignorException;
import org.apache.kafka.coordinator.group.streams.assignor.TopologyDescriber;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredInternalTopic;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredTopology;
import org.apache.kafka.coordinator.group.streams.topics.EndpointToPartitionsManager;
import org.apache.kafka.coordinator.group.streams.topics.InternalTopicManager;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The pure parts of streams groups behind one JSON line each: a topology beside the topics that
 * exist, tasks of members, the next step of a member, and partitions of an endpoint. Maps are
 * listed in Apache's order.
 */
public final class StreamsTasks {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Logger LOG = LoggerFactory.getLogger(StreamsTasks.class);

    private StreamsTasks() { }

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
        }
    }

    private static ObjectNode answer(JsonNode question) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            switch (question.get("kind").asText()) {
                case "configure" -> configured(configure(question), answer);
                case "assign" -> assign(question, answer);
                case "endpoint" -> endpoint(question, answer);
                case "reconcile" -> reconcile(question, answer);
                default -> throw new IllegalArgumentException(question.toString());
            }
        } catch (TaskAssignorException failed) {
            answer.put("failed", failed.getMessage());
        } catch (RuntimeException failed) {
            ApiError error = CoordinatorOperationExceptionHelper.handleOperationException(
                "judged", question, failed, ApiError::new, LOG);
            answer.putArray("refused").add(error.error().code()).add(error.message());
        }
        return answer;
    }

    private static ConfiguredTopology configure(JsonNode question) {
        StreamsGroupTopologyValue value =
            StreamsGroupTopologyValueJsonConverter.read(question.get("topology"), (short) 0);
        return InternalTopicManager.configureTopics(LOG, "group", "member", 7,
            StreamsTopology.fromRecord(value), image(question.get("topics")), Time.SYSTEM);
    }

    private static CoordinatorMetadataImage image(JsonNode topics) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        topics.properties().forEach(each -> {
            Uuid id = Uuid.randomUuid();
            delta.replay(new TopicRecord().setName(each.getKey()).setTopicId(id));
            for (int partition = 0; partition < each.getValue().asInt(); partition++) {
                delta.replay(new PartitionRecord().setTopicId(id).setPartitionId(partition)
                    .setReplicas(List.of(1)).setIsr(List.of(1)).setLeader(1));
            }
        });
        return new KRaftCoordinatorMetadataImage(
            delta.apply(new MetadataProvenance(1, 0, 0, true)));
    }

    private static void configured(ConfiguredTopology made, ObjectNode answer) {
        made.subtopologies().ifPresentOrElse(all -> {
            ArrayNode listed = answer.putArray("subtopologies");
            all.forEach((id, each) -> {
                ObjectNode one = listed.addObject().put("id", id).put("tasks", each.numberOfTasks());
                each.sourceTopics().forEach(one.putArray("sources")::add);
                each.repartitionSinkTopics().forEach(one.putArray("sinks")::add);
                topics(each.repartitionSourceTopics(), one.putArray("repartitions"));
                topics(each.stateChangelogTopics(), one.putArray("changelogs"));
            });
        }, () -> answer.putNull("subtopologies"));
        ArrayNode create = answer.putArray("create");
        made.internalTopicsToBeCreated().forEach((name, topic) -> {
            ArrayNode one = create.addArray().add(topic.name()).add(topic.numPartitions())
                .add(topic.replicationFactor());
            ArrayNode configs = one.addArray();
            topic.configs().forEach(each -> configs.addArray().add(each.name()).add(each.value()));
        });
        made.topicConfigurationException().ifPresentOrElse(
            failed -> answer.putArray("failure").add(failed.status().code()).add(failed.getMessage()),
            () -> answer.putNull("failure"));
    }

    private static void topics(Map<String, ConfiguredInternalTopic> topics, ArrayNode listed) {
        topics.forEach((name, topic) -> {
            ArrayNode one = listed.addArray().add(name).add(topic.numberOfPartitions())
                .add(topic.replicationFactor().orElse((short) 0));
            ArrayNode configs = one.addArray();
            topic.topicConfigs().forEach((key, value) -> configs.addArray().add(key).add(value));
        });
    }

    private static void assign(JsonNode question, ObjectNode answer) {
        Map<String, AssignmentMemberSpec> members = new HashMap<>();
        for (JsonNode member : question.get("members")) {
            members.put(member.get("id").asText(), new AssignmentMemberSpec(
                Optional.empty(), Optional.empty(), tasks(member.get("active")),
                tasks(member.get("standby")), Map.of(), member.get("process").asText(),
                Map.of(), Map.of(), Map.of()));
        }
        Map<String, String> configs = question.get("replicas").isNull()
            ? Map.of() : Map.of("num.standby.replicas", question.get("replicas").asText());
        var made = new StickyTaskAssignor()
            .assign(new GroupSpecImpl(members, configs), new Topology(question.get("topology")));
        ObjectNode targets = answer.putObject("targets");
        made.members().forEach((id, target) -> {
            ObjectNode kinds = targets.putObject(id);
            put(kinds.putObject("active"), target.activeTasks());
            put(kinds.putObject("standby"), target.standbyTasks());
            put(kinds.putObject("warmup"), target.warmupTasks());
        });
    }

    private static Map<String, Set<Integer>> tasks(JsonNode listed) {
        Map<String, Set<Integer>> found = new HashMap<>();
        listed.properties().forEach(each -> {
            Set<Integer> partitions = new HashSet<>();
            each.getValue().forEach(number -> partitions.add(number.asInt()));
            found.put(each.getKey(), partitions);
        });
        return found;
    }

    private static void put(ObjectNode kind, Map<String, Set<Integer>> tasks) {
        tasks.forEach((id, partitions) ->
            partitions.stream().sorted().forEach(kind.putArray(id)::add));
    }

    private static void endpoint(JsonNode question, ObjectNode answer) {
        StreamsGroup group =
            new StreamsGroup(new LogContext(), new SnapshotRegistry(new LogContext()), "group");
        group.setConfiguredTopology(configure(question));
        Map<String, Map<Integer, Integer>> active = new HashMap<>();
        tasks(question.get("active")).forEach((id, partitions) -> {
            Map<Integer, Integer> epochs = new HashMap<>();
            partitions.forEach(each -> epochs.put(each, 1));
            active.put(id, epochs);
        });
        StreamsGroupMember member = StreamsGroupMember.Builder.withDefaults("member")
            .setAssignedTasks(
                new TasksTupleWithEpochs(active, tasks(question.get("standby")), Map.of()))
            .build();
        var made = EndpointToPartitionsManager.endpointToPartitions(
            member, new StreamsGroupHeartbeatResponseData.Endpoint().setHost("host").setPort(9),
            group, image(question.get("topicsThen")));
        partitions(made.activePartitions(), answer.putArray("active"));
        partitions(made.standbyPartitions(), answer.putArray("standby"));
    }

    private static void partitions(
        List<StreamsGroupHeartbeatResponseData.TopicPartition> made, ArrayNode listed) {
        made.forEach(each -> {
            ArrayNode numbers = listed.addArray().add(each.topic()).addArray();
            each.partitions().stream().sorted().forEach(numbers::add);
        });
    }

    private static void reconcile(JsonNode question, ObjectNode answer) {
        JsonNode given = question.get("member");
        JsonNode holders = question.get("holders");
        CurrentAssignmentBuilder builder = new CurrentAssignmentBuilder(
            StreamsGroupMember.Builder.withDefaults("member")
                .setProcessId(given.get("process").asText())
                .setState(MemberState.fromValue((byte) given.get("state").asInt()))
                .setMemberEpoch(given.get("epoch").asInt())
                .setPreviousMemberEpoch(given.get("previous").asInt())
                .setAssignedTasks(withEpochs(given.get("assigned")))
                .setTasksPendingRevocation(withEpochs(given.get("pending")))
                .build());
        builder.withTargetAssignment(
            question.get("epoch").asInt(), tuple(question.get("target")));
        builder.withOwnedAssignment(
            question.get("owned").isNull() ? null : tuple(question.get("owned")));
        builder.withCurrentActiveTaskProcessId((id, partition) -> {
            JsonNode found = holders.get("active").get(id + "/" + partition);
            return found == null ? null : found.asText();
        });
        builder.withCurrentStandbyTaskProcessIds(
            (id, partition) -> processes(holders.get("standby").get(id + "/" + partition)));
        builder.withCurrentWarmupTaskProcessIds(
            (id, partition) -> processes(holders.get("warmup").get(id + "/" + partition)));
        StreamsGroupMember after = builder.build();
        answer.put("state", after.state().value());
        answer.put("epoch", after.memberEpoch()).put("previous", after.previousMemberEpoch());
        putWithEpochs(answer.putObject("assigned"), after.assignedTasks());
        putWithEpochs(answer.putObject("pending"), after.tasksPendingRevocation());
    }

    private static Set<String> processes(JsonNode listed) {
        Set<String> found = new HashSet<>();
        if (listed != null) {
            listed.forEach(each -> found.add(each.asText()));
        }
        return found;
    }

    private static TasksTuple tuple(JsonNode kinds) {
        return new TasksTuple(tasks(kinds.get("active")), tasks(kinds.get("standby")),
            tasks(kinds.get("warmup")));
    }

    /** Active tasks as partition to epoch, the others as lists. */
    private static TasksTupleWithEpochs withEpochs(JsonNode kinds) {
        Map<String, Map<Integer, Integer>> active = new HashMap<>();
        kinds.get("active").properties().forEach(each -> {
            Map<Integer, Integer> epochs = new HashMap<>();
            each.getValue().properties().forEach(
                one -> epochs.put(Integer.valueOf(one.getKey()), one.getValue().asInt()));
            active.put(each.getKey(), epochs);
        });
        return new TasksTupleWithEpochs(
            active, tasks(kinds.get("standby")), tasks(kinds.get("warmup")));
    }

    private static void putWithEpochs(ObjectNode kinds, TasksTupleWithEpochs tasks) {
        ObjectNode active = kinds.putObject("active");
        tasks.activeTasksWithEpochs().forEach((id, epochs) -> {
            ObjectNode listed = active.putObject(id);
            epochs.forEach((partition, epoch) -> listed.put(partition.toString(), epoch));
        });
        put(kinds.putObject("standby"), tasks.standbyTasks());
        put(kinds.putObject("warmup"), tasks.warmupTasks());
    }

    private static final class Topology implements TopologyDescriber {
        private final TreeMap<String, JsonNode> subtopologies = new TreeMap<>();

        private Topology(JsonNode listed) {
            listed.properties().forEach(each -> subtopologies.put(each.getKey(), each.getValue()));
        }

        @Override
        public List<String> subtopologies() {
            return List.copyOf(subtopologies.keySet());
        }

        @Override
        public int maxNumInputPartitions(String id) {
            return subtopologies.get(id).get(0).asInt();
        }

        @Override
        public boolean isStateful(String id) {
            return subtopologies.get(id).get(1).asBoolean();
        }
    }
}
