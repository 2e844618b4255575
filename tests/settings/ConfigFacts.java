import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.DynamicConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Prints every configuration key of a release as one JSON object per line: the judge of settings/. */
public class ConfigFacts {
    static String quote(Object value) {
        if (value == null) return "null";
        String text = value.toString().replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", " ");
        return "\"" + text + "\"";
    }

    static String synonyms(String area, String name) {
        List<String> names = new ArrayList<>();
        if (area.equals("topic")) {
            for (ConfigSynonym synonym : ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.getOrDefault(name, List.of()))
                names.add(quote(synonym.name() + ":" + synonym.converter().apply("7")));
        } else if (area.equals("broker")) {
            for (String synonym : DynamicBrokerConfig.brokerConfigSynonyms(name, false)) names.add(quote(synonym));
        } else if (area.equals("group")) {
            GroupConfig.ALL_GROUP_CONFIG_SYNONYMS.get(name).ifPresent(synonym -> names.add(quote(synonym)));
        }
        return "[" + String.join(",", names) + "]";
    }

    /** Lists print nothing about emptiness and null; the definition's own fields tell. */
    static String listRules(ConfigDef.Validator validator) throws ReflectiveOperationException {
        if (!(validator instanceof ConfigDef.ValidList)) return "null";
        StringBuilder rules = new StringBuilder();
        for (String name : List.of("isEmptyAllowed", "isNullAllowed")) {
            var field = ConfigDef.ValidList.class.getDeclaredField(name);
            field.setAccessible(true);
            rules.append(rules.length() == 0 ? "" : ",").append(field.getBoolean(validator));
        }
        return "[" + rules + "]";
    }

    static void print(String area, Map<String, ConfigDef.ConfigKey> keys)
            throws ReflectiveOperationException {
        Map<String, String> modes = area.equals("broker") ? DynamicBrokerConfig.dynamicConfigUpdateModes() : Map.of();
        for (ConfigDef.ConfigKey key : new TreeMap<>(keys).values()) {
            boolean required = key.defaultValue == ConfigDef.NO_DEFAULT_VALUE;
            String byDefault = required ? "\"<required>\"" : quote(ConfigDef.convertToString(key.defaultValue, key.type));
            System.out.println("{\"area\":" + quote(area) + ",\"name\":" + quote(key.name)
                + ",\"kind\":" + quote(key.type.toString().toLowerCase()) + ",\"default\":" + byDefault
                + ",\"importance\":" + quote(key.importance.toString().toLowerCase())
                + ",\"valid\":" + quote(key.validator) + ",\"list\":" + listRules(key.validator)
                + ",\"internal\":" + key.internalConfig
                + ",\"scope\":" + quote(modes.getOrDefault(key.name, "read-only"))
                + ",\"synonyms\":" + synonyms(area, key.name) + "}");
        }
    }

    public static void main(String[] arguments) throws ReflectiveOperationException {
        print("broker", AbstractKafkaConfig.CONFIG_DEF.configKeys());
        print("dynamic_broker", DynamicConfig.Broker.configKeys());
        print("topic", LogConfig.configKeys());
        print("group", GroupConfig.CONFIG_DEF.configKeys());
        print("client_metrics", ClientMetricsConfigs.configDef().configKeys());
    }
}
