package judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.KafkaClient;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.message.DescribeShareGroupOffsetsResponseData;
import org.apache.kafka.common.message.DescribeShareGroupOffsetsResponseDataJsonConverter;
import org.apache.kafka.common.message.DescribeShareGroupOffsetsResponseData.DescribeShareGroupOffsetsResponseGroup;
import org.apache.kafka.common.message.ListOffsetsResponseData;
import org.apache.kafka.common.message.ListOffsetsResponseData.ListOffsetsPartitionResponse;
import org.apache.kafka.common.message.ListOffsetsResponseData.ListOffsetsTopicResponse;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.ListOffsetsResponse;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.GroupCoordinatorService;
import org.apache.kafka.metadata.MetadataCache;
import org.apache.kafka.server.share.persister.PartitionFactory;
import org.apache.kafka.server.share.persister.PartitionStateSummaryData;
import org.apache.kafka.server.share.persister.ReadShareGroupStateSummaryResult;
import org.apache.kafka.server.share.persister.TopicData;
import org.apache.kafka.server.util.NetworkPartitionMetadataClient;
import org.apache.kafka.server.util.PartitionMetadataClient;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;

/**
 * What Apache's group coordinator and its client of leaders make of the summary of a topic's share
 * partitions and of what happens to the request for their ends. A question and its answer are lines
 * of JSON: {"states": [[start, count, error, leader epoch], ...], "leaderless": [partition, ...],
 * "outcomes": ["disconnected" or "timed out" or [[partition, error, offset], ...], ...]} and
 * {"pauses_ms": [...], "response": ...}.
 */
public final class ShareLag {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Uuid TOPIC_ID = new Uuid(1, 2);
    private static final String TOPIC = "topic";

    private final JsonNode question;
    private final ArrayNode pausesMs = JSON.createArrayNode();
    private final NetworkPartitionMetadataClient leaders;

    private ShareLag(JsonNode question) {
        this.question = question;
        MetadataCache leaderless = made(MetadataCache.class,
            (proxy, method, arguments) -> Optional.of(Node.noNode()));
        KafkaClient idle = made(KafkaClient.class, (proxy, method, arguments) -> {
            Thread.sleep(10);
            return method.getReturnType() == List.class ? List.of() : null;
        });
        Timer timer = made(Timer.class, (proxy, method, arguments) -> {
            if (method.getName().equals("add")) {
                pausesMs.add(((TimerTask) arguments[0]).delayMs);
            }
            return null;
        });
        leaders = new NetworkPartitionMetadataClient(
            leaderless, () -> idle, Time.SYSTEM, new ListenerName("PLAINTEXT"), timer);
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(JSON.writeValueAsString(new ShareLag(JSON.readTree(line)).answer()));
        }
        System.exit(0);
    }

    private ObjectNode answer() throws Exception {
        List<PartitionStateSummaryData> states = new ArrayList<>();
        for (JsonNode state : question.get("states")) {
            states.add(PartitionFactory.newPartitionStateSummaryData(
                states.size(), 1, state.get(0).asLong(), state.get(1).asInt(),
                state.get(3).asInt(), (short) state.get(2).asInt(), null));
        }
        ReadShareGroupStateSummaryResult summary = new ReadShareGroupStateSummaryResult.Builder()
            .setTopicsData(List.of(new TopicData<>(TOPIC_ID, states))).build();
        CompletableFuture<DescribeShareGroupOffsetsResponseGroup> group = new CompletableFuture<>();
        Constructor<?> constructor = GroupCoordinatorService.class.getDeclaredConstructors()[0];
        constructor.setAccessible(true);
        PartitionMetadataClient asked = made(PartitionMetadataClient.class,
            (proxy, method, arguments) -> ends((Set<?>) arguments[0]));
        GroupCoordinatorConfig config = new GroupCoordinatorConfig(
            new AbstractConfig(GroupCoordinatorConfig.CONFIG_DEF, Map.of(), false));
        Object service = constructor.newInstance(
            new LogContext(), config, null, null, null, null, null, asked);
        method(GroupCoordinatorService.class, "computeShareGroupLagAndBuildResponse").invoke(
            service, summary, Map.of(TOPIC_ID, TOPIC), List.of(), group, "group");
        DescribeShareGroupOffsetsResponseData response =
            new DescribeShareGroupOffsetsResponseData().setGroups(List.of(group.get()));
        ObjectNode answer = JSON.createObjectNode();
        answer.set("pauses_ms", pausesMs);
        answer.set("response",
            DescribeShareGroupOffsetsResponseDataJsonConverter.write(response, (short) 1));
        return answer;
    }

    /** Ask the real client, and let happen to its request what the question says. */
    private Map<TopicPartition, CompletableFuture<?>> ends(Set<?> asked) throws Exception {
        Map<TopicPartition, CompletableFuture<?>> all = new HashMap<>();
        Map<TopicPartition, CompletableFuture<?>> pending = new HashMap<>();
        for (Object each : asked) {
            TopicPartition partition = (TopicPartition) each;
            if (isLeaderless(partition.partition())) {
                all.putAll(leaders.listLatestOffsets(Set.of(partition)));
            } else {
                pending.put(partition, new CompletableFuture<>());
            }
        }
        if (pending.isEmpty()) {
            return all;
        }
        all.putAll(pending);
        Class<?> kind =
            Class.forName(NetworkPartitionMetadataClient.class.getName() + "$PendingRequest");
        Constructor<?> constructor = kind.getDeclaredConstructor(
            Node.class, Map.class, ListOffsetsRequest.Builder.class);
        constructor.setAccessible(true);
        Object request = constructor.newInstance(new Node(1, "localhost", 1), pending,
            ListOffsetsRequest.Builder.forConsumer(true, IsolationLevel.READ_UNCOMMITTED));
        for (JsonNode outcome : question.get("outcomes")) {
            method(NetworkPartitionMetadataClient.class, "handleResponse")
                .invoke(leaders, request, response(outcome));
        }
        return all;
    }

    private boolean isLeaderless(int partition) {
        for (JsonNode each : question.get("leaderless")) {
            if (each.asInt() == partition) {
                return true;
            }
        }
        return false;
    }

    /** A request that timed out counts as disconnected, too, as in Apache's network client. */
    private static ClientResponse response(JsonNode outcome) {
        ListOffsetsResponse body = null;
        if (outcome.isArray()) {
            ListOffsetsTopicResponse topic = new ListOffsetsTopicResponse().setName(TOPIC);
            for (JsonNode each : outcome) {
                topic.partitions().add(new ListOffsetsPartitionResponse()
                    .setPartitionIndex(each.get(0).asInt())
                    .setErrorCode((short) each.get(1).asInt())
                    .setOffset(each.get(2).asLong()));
            }
            body = new ListOffsetsResponse(new ListOffsetsResponseData().setTopics(List.of(topic)));
        }
        return new ClientResponse(null, null, "1", 0, 0, body == null,
            outcome.asText().equals("timed out"), null, null, body);
    }

    private static Method method(Class<?> owner, String name) {
        for (Method each : owner.getDeclaredMethods()) {
            if (each.getName().equals(name)) {
                each.setAccessible(true);
                return each;
            }
        }
        throw new IllegalArgumentException(name);
    }

    private static <T> T made(Class<T> kind, InvocationHandler handler) {
        return kind.cast(Proxy.newProxyInstance(
            ShareLag.class.getClassLoader(), new Class<?>[] {kind}, handler));
    }
}
