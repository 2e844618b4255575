package judge;

import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.apache.kafka.common.protocol.Message;

/**
 * One message of the release: its schema as it lies inside a jar, and the generated classes for it.
 *
 * <p>The schema only steers what random values are made; bytes and JSON come from the classes.
 */
final class MessageSchema {
    private static final JsonMapper MAPPER =
        JsonMapper.builder().enable(JsonReadFeature.ALLOW_JAVA_COMMENTS).build();
    private static final String[] PACKAGES = {
        "org.apache.kafka.common.message", "org.apache.kafka.common.metadata", "org.apache.kafka.raft.generated",
        "org.apache.kafka.coordinator.group.generated", "org.apache.kafka.coordinator.transaction.generated",
        "org.apache.kafka.coordinator.share.generated",
        "org.apache.kafka.server.log.remote.metadata.storage.generated",
        "org.apache.kafka.storage.internals.log.generated",
    };

    final JsonNode json;
    final String name;
    final Versions versions;
    final Versions flexible;
    final List<Kind> kinds;
    final Map<String, JsonNode> commonStructs = new HashMap<>();
    private final Class<?> dataClass;
    private final Method jsonWrite;
    private final Method jsonRead;

    private MessageSchema(JsonNode json) throws ReflectiveOperationException {
        this.json = json;
        this.name = json.get("name").asText();
        this.versions = Versions.parse(json.get("validVersions").asText(), Versions.NONE);
        this.flexible = Versions.parse(text(json, "flexibleVersions"), Versions.NONE);
        String type = json.get("type").asText();
        boolean rpc = type.equals("request") || type.equals("response") || type.equals("header");
        this.dataClass = find(rpc ? name + "Data" : name);
        Class<?> converter = Class.forName(dataClass.getName() + "JsonConverter");
        this.jsonWrite = converter.getMethod("write", dataClass, short.class, boolean.class);
        this.jsonRead = converter.getMethod("read", JsonNode.class, short.class);
        this.kinds = Kind.ofSchema(type, name, dataClass.getPackageName());
        for (JsonNode struct : json.path("commonStructs")) {
            commonStructs.put(struct.get("name").asText(), struct);
        }
    }

    private static Class<?> find(String className) throws ClassNotFoundException {
        for (String prefix : PACKAGES) {
            try {
                return Class.forName(prefix + "." + className);
            } catch (ClassNotFoundException absentHere) {
                continue;
            }
        }
        throw new ClassNotFoundException(className + " in none of the generated packages");
    }

    /** Every message with at least one version, by name. */
    static Map<String, MessageSchema> all() throws IOException, ReflectiveOperationException {
        Map<String, MessageSchema> found = new TreeMap<>();
        for (String path : classpathJars()) {
            try (JarFile jar = new JarFile(path)) {
                for (JarEntry entry : schemaEntries(jar)) {
                    JsonNode json = read(jar, entry);
                    if (!json.get("validVersions").asText().equals("none")) {
                        MessageSchema schema = new MessageSchema(json);
                        found.put(schema.name, schema);
                    }
                }
            }
        }
        return found;
    }

    private static List<String> classpathJars() {
        List<String> jars = new ArrayList<>();
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (new File(path).getName().startsWith("kafka-")) {
                jars.add(path);
            }
        }
        return jars;
    }

    private static List<JarEntry> schemaEntries(JarFile jar) {
        List<JarEntry> entries = new ArrayList<>();
        for (Enumeration<JarEntry> all = jar.entries(); all.hasMoreElements(); ) {
            JarEntry entry = all.nextElement();
            if (entry.getName().matches("(common/)?(message|metadata)/\\w+\\.json")) {
                entries.add(entry);
            }
        }
        return entries;
    }

    private static JsonNode read(JarFile jar, JarEntry entry) throws IOException {
        try (InputStream in = jar.getInputStream(entry)) {
            return MAPPER.readTree(in);
        }
    }

    static String text(JsonNode node, String key) {
        JsonNode value = node.get(key);
        return value == null ? null : value.asText();
    }

    int apiKey() {
        return json.get("apiKey").asInt();
    }

    Message empty() {
        try {
            return (Message) dataClass.getConstructor().newInstance();
        } catch (ReflectiveOperationException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /** Apache's own JSON of a message; record fields are lost in it (see {@link MessageForm}). */
    JsonNode writeJson(Message message, int version) {
        return (JsonNode) invoke(jsonWrite, message, (short) version, true);
    }

    Message readJson(JsonNode node, int version) {
        return (Message) invoke(jsonRead, node, (short) version);
    }

    private static Object invoke(Method method, Object... arguments) {
        try {
            return method.invoke(null, arguments);
        } catch (InvocationTargetException thrown) {
            if (thrown.getCause() instanceof RuntimeException) {
                throw (RuntimeException) thrown.getCause();
            }
            throw new IllegalStateException(thrown.getCause());
        } catch (IllegalAccessException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
