package judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Message;

/**
 * A process that says what Apache makes of bytes: the wire command's contract, answered by Apache.
 *
 * <p>JSON lines on standard input, one answer per line: {@code {"kind","name","version","hex"}} is
 * decoded, {@code {"kind","name","version","json"}} is encoded (messages only), anything that Apache
 * refuses is {@code {"error"}}.
 */
public final class Oracle {
    static final ObjectMapper MAPPER = new ObjectMapper();
    private static Map<String, MessageSchema> schemas;

    private Oracle() {
    }

    static Map<String, MessageSchema> schemas() {
        if (schemas == null) {
            try {
                schemas = MessageSchema.all();
            } catch (java.io.IOException | ReflectiveOperationException broken) {
                throw new IllegalStateException(broken);
            }
        }
        return schemas;
    }

    static MessageSchema schemaOf(ApiMessage message, MessageSchema guess) {
        String name = message.getClass().getSimpleName();
        return guess.name.equals(name) ? guess : schemas().get(name);
    }

    /** Apache's JSON of the bytes; any Throwable is its refusal. */
    static JsonNode decode(Kind kind, String name, int version, byte[] bytes) {
        return kind == Kind.RECORDS
            ? RecordsForm.toJson(bytes)
            : MessageForm.toJson(kind, schemas().get(name), version, bytes);
    }

    private static JsonNode answer(JsonNode line) {
        Kind kind = Kind.of(line.get("kind").asText());
        String name = line.get("name").asText();
        int version = line.get("version").asInt();
        ObjectNode answer = MAPPER.createObjectNode();
        if (line.has("hex")) {
            byte[] bytes = HexFormat.of().parseHex(line.get("hex").asText());
            return answer.set("json", decode(kind, name, version, bytes));
        }
        MessageSchema schema = schemas().get(name);
        JsonNode json = line.get("json");
        boolean framed = json.has("data") && (json.has("type") || json.has("version"));
        Message message = schema.readJson(framed ? json.get("data") : json, version);
        return answer.put("hex", HexFormat.of().formatHex(MessageForm.toBytes(kind, schema, version, message)));
    }

    /** Answer every line of standard input. */
    public static void main(String[] arguments) throws java.io.IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode answer;
            try {
                answer = answer(MAPPER.readTree(line));
            } catch (Exception | Error refused) {
                answer = MAPPER.createObjectNode().put("error", refused.toString());
            }
            out.println(MAPPER.writeValueAsString(answer));
            if (!in.ready()) {
                out.flush();
            }
        }
        out.flush();
    }
}
