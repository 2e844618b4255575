package judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;

/** Ways to spoil the JSON of a message: what a person or a script might ask to be encoded. */
final class JsonMutation {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    private final Chance chance;

    JsonMutation(Chance chance) {
        this.chance = chance;
    }

    /** A copy of the JSON with one change in one of its objects. */
    JsonNode of(JsonNode good) {
        JsonNode bad = good.deepCopy();
        List<ObjectNode> objects = new ArrayList<>();
        collect(bad, objects);
        ObjectNode object = objects.get(chance.below(objects.size()));
        List<String> keys = new ArrayList<>();
        object.fieldNames().forEachRemaining(keys::add);
        if (keys.isEmpty() || chance.oneIn(8)) {
            object.put("nobodyKnowsThis", 7);
            return bad;
        }
        String key = keys.get(chance.below(keys.size()));
        if (chance.oneIn(3)) {
            object.remove(key);
        } else {
            object.set(key, instead(object.get(key)));
        }
        return bad;
    }

    private static void collect(JsonNode node, List<ObjectNode> objects) {
        if (node.isObject()) {
            objects.add((ObjectNode) node);
        }
        node.forEach(child -> collect(child, objects));
    }

    /** A value that the field may or may not be able to hold. */
    private JsonNode instead(JsonNode value) {
        if (chance.oneIn(4)) {
            return NODES.nullNode();
        }
        if (value.isIntegralNumber()) {
            // Apache reads 128 to 256 in an int8 as 0 to 128, which nobody should rely on: left out.
            long[] edges = {257, -129, 32768, -32769, 65535, 65536, 1L << 31, -(1L << 31) - 1, 1L << 32, -1};
            return NODES.numberNode(edges[chance.below(edges.length)]);
        }
        if (value.isArray() && !value.isEmpty()) {
            ArrayNode twice = ((ArrayNode) value).deepCopy();
            return twice.add(value.get(0).deepCopy());
        }
        return value.isTextual() ? NODES.textNode("") : value;
    }
}
