package judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collection;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.types.RawTaggedField;

/**
 * A random message of one schema and version, as JSON that Apache's reader turns into an object.
 *
 * <p>The fill says how rich: {@code BARE} is zeros, nulls and empty arrays, {@code FULL} has every
 * nullable and tagged field set, {@code MIXED} draws.
 */
final class RandomMessage {
    enum Fill { BARE, FULL, MIXED }

    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    private static final int FIRST_UNKNOWN_TAG = 100;
    private static final int HIGHEST_UNKNOWN_TAG = Integer.MAX_VALUE - 1;

    private final MessageSchema schema;
    private final int version;
    private final Chance chance;
    private final Fill fill;

    RandomMessage(MessageSchema schema, int version, Chance chance, Fill fill) {
        this.schema = schema;
        this.version = version;
        this.chance = chance;
        this.fill = fill;
    }

    Message message() {
        return schema.readJson(struct(schema.json.path("fields"), 0), version);
    }

    private ObjectNode struct(JsonNode fields, int depth) {
        ObjectNode object = NODES.objectNode();
        for (JsonNode field : fields) {
            Versions tagged = Versions.parse(MessageSchema.text(field, "taggedVersions"), Versions.NONE);
            if (present(field).contains(version) && !(tagged.contains(version) && leaveOut())) {
                object.set(key(field), value(field, field.get("type").asText(), depth));
            }
        }
        return object;
    }

    /** The versions of a field; one that does not state them has its tagged ones, or all. */
    private Versions present(JsonNode field) {
        Versions tagged = Versions.parse(MessageSchema.text(field, "taggedVersions"), schema.versions);
        return Versions.parse(MessageSchema.text(field, "versions"), tagged);
    }

    private boolean leaveOut() {
        return fill == Fill.BARE || fill == Fill.MIXED && chance.oneIn(2);
    }

    private boolean absent(JsonNode field) {
        Versions nullable = Versions.parse(MessageSchema.text(field, "nullableVersions"), Versions.NONE);
        if (!nullable.contains(version) || fill == Fill.FULL) {
            return false;
        }
        return fill == Fill.BARE || chance.oneIn(4);
    }

    private JsonNode value(JsonNode field, String type, int depth) {
        if (absent(field)) {
            return NullNode.instance;
        }
        if (type.startsWith("[]")) {
            return array(field, type.substring(2), depth);
        }
        return element(field, type, depth);
    }

    private ArrayNode array(JsonNode field, String type, int depth) {
        ArrayNode array = NODES.arrayNode();
        boolean plain = !Character.isUpperCase(type.charAt(0));
        int count = fill == Fill.BARE ? 0 : fill == Fill.FULL ? 2 : chance.count(depth, plain);
        for (int i = 0; i < count; i++) {
            array.add(element(field, type, depth + 1));
        }
        return array;
    }

    private JsonNode element(JsonNode field, String type, int depth) {
        if (Character.isUpperCase(type.charAt(0))) {
            return struct(structFields(field, type), depth + 1);
        }
        return fill == Fill.BARE ? zero(type) : primitive(type);
    }

    private JsonNode structFields(JsonNode field, String type) {
        JsonNode own = field.path("fields");
        if (!own.isEmpty()) {
            return own;
        }
        JsonNode struct = schema.commonStructs.get(type);
        return struct == null ? NODES.arrayNode() : struct.path("fields");
    }

    private JsonNode zero(String type) {
        switch (type) {
            case "bool":
                return NODES.booleanNode(false);
            case "string":
                return NODES.textNode("");
            case "bytes":
            case "records":
                return NODES.textNode("");
            case "uuid":
                return NODES.textNode(Uuid.ZERO_UUID.toString());
            case "float64":
                return NODES.numberNode(0.0);
            default:
                return NODES.numberNode(0);
        }
    }

    private JsonNode primitive(String type) {
        switch (type) {
            case "bool":
                return NODES.booleanNode(chance.oneIn(2));
            case "string":
                return NODES.textNode(chance.text());
            case "bytes":
                return NODES.binaryNode(chance.bytes());
            case "records":
                return NODES.binaryNode(chance.oneIn(2) ? chance.bytes() : new RandomRecords(chance).batch());
            case "uuid":
                return NODES.textNode(new Uuid(chance.random.nextLong(), chance.random.nextLong()).toString());
            case "float64":
                return NODES.numberNode(chance.real());
            case "uint16":
                return NODES.numberNode(chance.unsigned(16));
            case "uint32":
                return NODES.numberNode(chance.unsigned(32));
            default:
                return NODES.numberNode(chance.integer(Integer.parseInt(type.substring(3))));
        }
    }

    /** Give some structs of a flexible message tags that no schema knows; true if any got one. */
    boolean addUnknownTags(Message message) {
        return schema.flexible.contains(version) && addUnknownTags(message, schema.json.path("fields"));
    }

    private boolean addUnknownTags(Message message, JsonNode fields) {
        TreeSet<Integer> numbers = new TreeSet<>();
        for (int i = chance.below(3); i > 0; i--) {
            numbers.add(chance.oneIn(4) ? HIGHEST_UNKNOWN_TAG - chance.below(9) : FIRST_UNKNOWN_TAG + chance.below(400));
        }
        for (int number : numbers) {
            message.unknownTaggedFields().add(new RawTaggedField(number, chance.bytes()));
        }
        boolean any = !numbers.isEmpty();
        for (JsonNode field : fields) {
            String type = field.get("type").asText().replace("[]", "");
            if (Character.isUpperCase(type.charAt(0)) && present(field).contains(version)) {
                any |= inside(MessageForm.get(message, key(field)), structFields(field, type));
            }
        }
        return any;
    }

    private boolean inside(Object value, JsonNode fields) {
        boolean any = false;
        if (value instanceof Message) {
            any = addUnknownTags((Message) value, fields);
        } else if (value instanceof Collection) {
            for (Object element : (Collection<?>) value) {
                any |= addUnknownTags((Message) element, fields);
            }
        }
        return any;
    }

    private static String key(JsonNode field) {
        String name = field.get("name").asText();
        return Character.toLowerCase(name.charAt(0)) + name.substring(1);
    }
}
