package judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.raft.QuorumConfig;
import org.apache.kafka.server.ProcessRole;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.storage.internals.log.LogConfig;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What a node of Apache's makes of the entries of a server.properties before it opens a file. A
 * question is an object of keys and texts; its answer is {"error": text}, or {"values": {key: text},
 * "topic": {key: text}, "listeners": [...], "advertised": [...], "controllers": [...], "early": [...],
 * "between": name}, an endpoint as [listener, protocol, host, port].
 */
public final class ServerProperties {
    private static final ObjectMapper JSON = new ObjectMapper();

    private ServerProperties() { }

    private static ObjectNode answer(JsonNode question) {
        Properties entries = new Properties();
        question.properties().forEach(entry -> entries.put(entry.getKey(), entry.getValue().textValue()));
        ObjectNode answer = JSON.createObjectNode();
        try {
            KafkaConfig config = KafkaConfig.fromProps(entries, false);
            QuorumConfig.parseVoterConnections(config.quorumConfig().voters());
            fill(answer, config);
        } catch (Exception refused) {
            answer.removeAll();
            answer.put("error", refused.getMessage());
            answer.put("class", refused.getClass().getSimpleName());
        }
        return answer;
    }

    private static void fill(ObjectNode answer, KafkaConfig config) {
        ObjectNode values = answer.putObject("values");
        AbstractKafkaConfig.CONFIG_DEF.configKeys().forEach((name, key) ->
            values.put(name, ConfigDef.convertToString(config.get(name), key.type)));
        if (config.processRoles().contains(ProcessRole.BrokerRole)) {
            logs(answer.putObject("topic"), config);
        }
        endpoints(answer.putArray("listeners"), CollectionConverters.asJava(config.listeners()));
        endpoints(answer.putArray("advertised"),
            CollectionConverters.asJava(config.effectiveAdvertisedBrokerListeners()));
        endpoints(answer.putArray("controllers"),
            CollectionConverters.asJava(config.effectiveAdvertisedControllerListeners()));
        answer.put("between", config.interBrokerListenerName().value());
    }

    private static void logs(ObjectNode shown, KafkaConfig config) {
        LogConfig.validateBrokerLogConfigValues(config.extractLogConfigMap(), false);
        LogConfig logs = new LogConfig(config.extractLogConfigMap());
        LogConfig.configKeys().forEach((name, key) -> {
            if (logs.values().containsKey(name)) {
                shown.put(name, ConfigDef.convertToString(logs.values().get(name), key.type));
            }
        });
    }

    private static void endpoints(ArrayNode shown, Iterable<Endpoint> endpoints) {
        for (Endpoint each : endpoints) {
            shown.addArray().add(each.listener()).add(each.securityProtocol().name)
                .add(each.host()).add(each.port());
        }
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader questions =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            System.out.println(answer(JSON.readTree(line)));
        }
    }
}
