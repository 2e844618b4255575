package judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import kafka.server.KafkaConfig;
import kafka.server.NetworkUtils;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.message.DeleteShareGroupStateRequestDataJsonConverter;
import org.apache.kafka.common.message.InitializeShareGroupStateRequestDataJsonConverter;
import org.apache.kafka.common.message.ReadShareGroupStateRequestDataJsonConverter;
import org.apache.kafka.common.message.ReadShareGroupStateSummaryRequestDataJsonConverter;
import org.apache.kafka.common.message.WriteShareGroupStateRequestDataJsonConverter;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.share.SharePartitionKey;
import org.apache.kafka.server.share.persister.DefaultStatePersister;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;
import org.apache.kafka.server.share.persister.PersisterStateManager;
import org.apache.kafka.server.share.persister.ReadShareGroupStateParameters;
import org.apache.kafka.server.share.persister.ReadShareGroupStateSummaryParameters;
import org.apache.kafka.server.share.persister.ShareCoordinatorMetadataCacheHelper;
import org.apache.kafka.server.share.persister.WriteShareGroupStateParameters;
import org.apache.kafka.server.util.timer.SystemTimer;
import org.apache.kafka.server.util.timer.SystemTimerReaper;

/**
 * Apache's own client of share coordinators, which knows one broker and nothing of its topics, so
 * that it asks for each coordinator. A call is a request as JSON, a line; so are its results.
 */
public final class SharePersister {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final short NEWEST = 1;
    private static final short ONLY = 0;

    private final DefaultStatePersister persister;

    private SharePersister(Node broker) {
        KafkaConfig config = new KafkaConfig(Map.of(
            "process.roles", "broker",
            "node.id", "9",
            "controller.listener.names", "CONTROLLER",
            "controller.quorum.voters", "1@127.0.0.1:1",
            "listeners", "PLAINTEXT://127.0.0.1:0"));
        PersisterStateManager manager = new PersisterStateManager(
            NetworkUtils.buildNetworkClient(
                "Persister", config, new Metrics(), Time.SYSTEM, new LogContext()),
            new OneBroker(broker), Time.SYSTEM,
            new SystemTimerReaper("persister-reaper", new SystemTimer("persister")));
        persister = new DefaultStatePersister(manager);
    }

    public static void main(String[] arguments) throws Exception {
        SharePersister caller =
            new SharePersister(new Node(1, arguments[0], Integer.parseInt(arguments[1])));
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            try {
                System.out.println(JSON.writeValueAsString(caller.results(JSON.readTree(line))));
            } catch (TimeoutException late) {
                System.exit(1);
            }
        }
        System.exit(0);
    }

    private ArrayNode results(JsonNode call) throws Exception {
        JsonNode request = call.get("request");
        ArrayNode found = JSON.createArrayNode();
        switch (call.get("kind").asText()) {
            case "initialize" -> persister.initializeState(InitializeShareGroupStateParameters.from(
                InitializeShareGroupStateRequestDataJsonConverter.read(request, ONLY)))
                .get(60, TimeUnit.SECONDS).topicsData().forEach(topic -> topic.partitions().forEach(
                    each -> add(found, each.partition(), each.errorCode(), each.errorMessage())));
            case "write" -> persister.writeState(WriteShareGroupStateParameters.from(
                WriteShareGroupStateRequestDataJsonConverter.read(request, NEWEST)))
                .get(60, TimeUnit.SECONDS).topicsData().forEach(topic -> topic.partitions().forEach(
                    each -> add(found, each.partition(), each.errorCode(), each.errorMessage())));
            case "delete" -> persister.deleteState(DeleteShareGroupStateParameters.from(
                DeleteShareGroupStateRequestDataJsonConverter.read(request, ONLY)))
                .get(60, TimeUnit.SECONDS).topicsData().forEach(topic -> topic.partitions().forEach(
                    each -> add(found, each.partition(), each.errorCode(), each.errorMessage())));
            case "read" -> persister.readState(ReadShareGroupStateParameters.from(
                ReadShareGroupStateRequestDataJsonConverter.read(request, ONLY)))
                .get(60, TimeUnit.SECONDS).topicsData().forEach(topic -> topic.partitions().forEach(each -> {
                    ObjectNode result = add(found, each.partition(), each.errorCode(), each.errorMessage());
                    result.put("stateEpoch", each.stateEpoch()).put("start", each.startOffset());
                    ArrayNode batches = result.putArray("batches");
                    each.stateBatches().forEach(batch -> batches.addArray()
                        .add(batch.firstOffset()).add(batch.lastOffset())
                        .add(batch.deliveryState()).add(batch.deliveryCount()));
                }));
            default -> persister.readSummary(ReadShareGroupStateSummaryParameters.from(
                ReadShareGroupStateSummaryRequestDataJsonConverter.read(request, NEWEST)))
                .get(60, TimeUnit.SECONDS).topicsData().forEach(topic -> topic.partitions().forEach(each -> {
                    ObjectNode result = add(found, each.partition(), each.errorCode(), each.errorMessage());
                    result.put("stateEpoch", each.stateEpoch()).put("start", each.startOffset())
                        .put("leaderEpoch", each.leaderEpoch())
                        .put("complete", each.deliveryCompleteCount());
                }));
        }
        return found;
    }

    private static ObjectNode add(ArrayNode found, int partition, short error, String message) {
        return found.addObject().put("partition", partition).put("error", error).put("message", message);
    }

    /** The metadata of a broker that has heard of no topic yet. */
    private record OneBroker(Node node) implements ShareCoordinatorMetadataCacheHelper {
        @Override
        public boolean containsTopic(String topic) {
            return false;
        }

        @Override
        public Node getShareCoordinator(SharePartitionKey key, String internalTopicName) {
            return Node.noNode();
        }

        @Override
        public List<Node> getClusterNodes() {
            return List.of(node);
        }
    }
}
