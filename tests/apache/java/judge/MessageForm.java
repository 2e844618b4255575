package judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Bytes to JSON and JSON to bytes of every kind but records, by Apache's classes alone.
 *
 * <p>Added to what the converters write: records fields as base64 of their bytes, and the small
 * objects around the data of framed kinds.
 */
final class MessageForm {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    private MessageForm() {
    }

    static JsonNode toJson(Kind kind, MessageSchema schema, int version, byte[] bytes) {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        switch (kind) {
            case METADATA_FRAME:
                return frameToJson(schema, buffer);
            case COORDINATOR_KEY:
                short type = buffer.getShort();
                if (type != schema.apiKey()) {
                    throw new IllegalArgumentException("record type " + type + " is not of " + schema.name);
                }
                return wrapped("type", TextNode.valueOf(Short.toString(type)), dataToJson(schema, 0, buffer));
            case COORDINATOR_VALUE:
            case VERSION_PREFIXED:
                short prefix = buffer.getShort();
                if (!schema.versions.contains(prefix)) {
                    throw new IllegalArgumentException("version " + prefix + " is not of " + schema.name);
                }
                JsonNode data = dataToJson(schema, prefix, buffer);
                return wrapped("version", TextNode.valueOf(Short.toString(prefix)), data);
            default:
                return dataToJson(schema, version, buffer);
        }
    }

    static byte[] toBytes(Kind kind, MessageSchema schema, int version, Message message) {
        if (kind == Kind.METADATA_FRAME) {
            return frameToBytes(message, version);
        }
        boolean key = kind == Kind.COORDINATOR_KEY;
        if (key || kind == Kind.COORDINATOR_VALUE || kind == Kind.VERSION_PREFIXED) {
            byte[] body = body(message, version);
            short prefix = (short) (key ? schema.apiKey() : version);
            return ByteBuffer.allocate(2 + body.length).putShort(prefix).put(body).array();
        }
        return body(message, version);
    }

    private static byte[] body(Message message, int version) {
        return array(MessageUtil.toByteBufferAccessor(message, (short) version).buffer());
    }

    private static byte[] frameToBytes(Message message, int version) {
        ApiMessageAndVersion record = new ApiMessageAndVersion((ApiMessage) message, (short) version);
        ObjectSerializationCache cache = new ObjectSerializationCache();
        int size = MetadataRecordSerde.INSTANCE.recordSize(record, cache);
        ByteBuffer buffer = ByteBuffer.allocate(size);
        MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(buffer));
        buffer.flip();
        return array(buffer);
    }

    private static JsonNode frameToJson(MessageSchema labelled, ByteBuffer buffer) {
        int size = buffer.remaining();
        ApiMessageAndVersion record =
            MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(buffer), size);
        String type = MetadataRecordType.fromId(record.message().apiKey()).name();
        MessageSchema schema = Oracle.schemaOf(record.message(), labelled);
        ObjectNode json = NODES.objectNode().put("type", type).put("version", record.version());
        return json.set("data", withRecords(schema.writeJson(record.message(), record.version()), record.message()));
    }

    private static JsonNode dataToJson(MessageSchema schema, int version, ByteBuffer buffer) {
        Message message = schema.empty();
        message.read(new ByteBufferAccessor(buffer), (short) version);
        return dataToJson(schema, version, message);
    }

    static JsonNode dataToJson(MessageSchema schema, int version, Message message) {
        return withRecords(schema.writeJson(message, version), message);
    }

    private static JsonNode wrapped(String key, JsonNode value, JsonNode data) {
        ObjectNode json = NODES.objectNode();
        json.set(key, value);
        json.set("data", data);
        return json;
    }

    /** Put the bytes of every records field into the JSON where the converter left an empty text. */
    private static JsonNode withRecords(JsonNode node, Object value) {
        if (node.isObject() && value instanceof Message) {
            ObjectNode object = (ObjectNode) node;
            for (Map.Entry<String, JsonNode> field : object.properties()) {
                field.setValue(withRecords(field.getValue(), get(value, field.getKey())));
            }
        } else if (node.isArray() && value instanceof Collection) {
            ArrayNode array = (ArrayNode) node;
            List<Object> elements = new ArrayList<>((Collection<?>) value);
            for (int i = 0; i < array.size(); i++) {
                withRecords(array.get(i), elements.get(i));
            }
        } else if (value instanceof BaseRecords) {
            return NODES.binaryNode(array(((MemoryRecords) value).buffer()));
        }
        return node;
    }

    static Object get(Object message, String field) {
        try {
            Method getter = message.getClass().getMethod(field);
            return getter.invoke(message);
        } catch (ReflectiveOperationException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    static byte[] array(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }
}
