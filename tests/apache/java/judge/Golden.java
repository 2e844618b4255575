package judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;

/**
 * Print golden vectors, a JSON object per line: {@code Golden SEED PER_VERSION MALFORMED small|large}.
 *
 * <p>A good vector is {@code kind, name, version, hex, json, canonical}; canonical means that its
 * JSON says everything, so that encoding it must give the same bytes (false with unknown tags, with
 * compression, and for formats that are only read). A malformed one has {@code verdict} accept or
 * refuse instead of canonical, and its JSON only where Apache accepts it. One that {@code asks}
 * encode is JSON to be encoded: its bytes are there only where Apache can.
 */
public final class Golden {
    private static final RandomMessage.Fill[] FILLS =
        {RandomMessage.Fill.FULL, RandomMessage.Fill.BARE, RandomMessage.Fill.MIXED};

    private static final int CANONICAL_FACTOR = 10;

    private final Chance chance;
    private final PrintStream out;

    private Golden(Chance chance, PrintStream out) {
        this.chance = chance;
        this.out = out;
    }

    /** Generate everything for one seed. */
    public static void main(String[] arguments) throws IOException {
        int perVersion = Integer.parseInt(arguments[1]);
        int malformed = Integer.parseInt(arguments[2]);
        Chance chance = new Chance(Long.parseLong(arguments[0]), arguments[3].equals("large"));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        Golden golden = new Golden(chance, out);
        for (MessageSchema schema : Oracle.schemas().values()) {
            for (Kind kind : schema.kinds) {
                for (int v = schema.versions.lowest; v <= schema.versions.highest; v++) {
                    golden.message(kind, schema, v, perVersion, malformed);
                }
            }
        }
        golden.records(perVersion, malformed);
        out.flush();
    }

    private void message(Kind kind, MessageSchema schema, int version, int count, int malformed) throws IOException {
        byte[] last = null;
        for (int i = 0; i < count; i++) {
            RandomMessage.Fill fill = FILLS[Math.min(i, FILLS.length - 1)];
            RandomMessage random = new RandomMessage(schema, version, chance, fill);
            Message message = random.message();
            boolean unknown = i > 1 && chance.oneIn(2) && random.addUnknownTags(message);
            last = MessageForm.toBytes(kind, schema, version, message);
            good(kind, schema.name, version, last, !unknown);
        }
        otherJson(kind, schema, version, malformed);
        int kept = kind == Kind.VERSION_PREFIXED ? 2 : 0;
        for (int i = 0; i < malformed; i++) {
            spoiled(kind, schema.name, version, new Mutation(chance).of(last, kept));
        }
    }

    /** JSON that was spoiled, or that was made for another version of the same message. */
    private void otherJson(Kind kind, MessageSchema schema, int version, int count) throws IOException {
        if (kind == Kind.METADATA_FRAME || kind == Kind.COORDINATOR_KEY || kind == Kind.COORDINATOR_VALUE
            || kind == Kind.VERSION_PREFIXED) {
            return;
        }
        for (int i = 0; i < count; i++) {
            boolean foreign = i % 2 == 1;
            int made = foreign
                ? schema.versions.lowest + chance.below(schema.versions.highest - schema.versions.lowest + 1) : version;
            RandomMessage random = new RandomMessage(schema, made, chance, RandomMessage.Fill.MIXED);
            JsonNode json = MessageForm.dataToJson(schema, made, random.message());
            asked(kind, schema, version, foreign ? json : new JsonMutation(chance).of(json));
        }
    }

    private void asked(Kind kind, MessageSchema schema, int version, JsonNode json) throws IOException {
        ObjectNode line = Oracle.MAPPER.createObjectNode().put("kind", kind.text()).put("name", schema.name)
            .put("version", version).put("asks", "encode");
        line.set("json", json);
        try {
            byte[] bytes = MessageForm.toBytes(kind, schema, version, schema.readJson(json, version));
            line.put("verdict", "accept").put("hex", HexFormat.of().formatHex(bytes));
        } catch (Exception refused) {
            line.put("verdict", "refuse").put("hex", "").put("reason", refused.toString());
        }
        print(line);
    }

    private void records(int count, int malformed) throws IOException {
        RandomRecords random = new RandomRecords(chance);
        for (int magic = 0; magic <= 2; magic++) {
            for (CompressionType codec : CompressionType.values()) {
                for (TimestampType stamps : new TimestampType[] {TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME}) {
                    if (!(magic < 2 && codec == CompressionType.ZSTD)) {
                        records(random, magic, codec, stamps, count, malformed * 5);
                    }
                }
            }
        }
    }

    private void records(
        RandomRecords random, int magic, CompressionType codec, TimestampType stamps, int count, int malformed)
        throws IOException {
        boolean canonical =
            magic == 2 && codec == CompressionType.NONE && stamps == TimestampType.CREATE_TIME;
        for (int i = 0; i < (canonical ? count * CANONICAL_FACTOR : count); i++) {
            good(Kind.RECORDS, "MemoryRecords", magic, random.several(magic, codec, stamps), canonical);
        }
        for (int i = 0; i < malformed; i++) {
            byte[] bytes = random.batch(magic, codec, stamps);
            spoiled(Kind.RECORDS, "MemoryRecords", magic, new Mutation(chance).ofRecords(bytes));
        }
    }

    private void good(Kind kind, String name, int version, byte[] bytes, boolean canonical) throws IOException {
        JsonNode json = Oracle.decode(kind, name, version, bytes);
        ObjectNode line = line(kind, name, version, bytes);
        line.put("canonical", canonical);
        line.set("json", json);
        print(line);
    }

    private void spoiled(Kind kind, String name, int version, byte[] bytes) throws IOException {
        ObjectNode line = line(kind, name, version, bytes);
        try {
            JsonNode json = Oracle.decode(kind, name, version, bytes);
            line.put("verdict", "accept").set("json", json);
        } catch (Throwable refused) { // decompressors throw errors of their own
            line.put("verdict", "refuse").put("reason", refused.toString());
        }
        print(line);
    }

    private static ObjectNode line(Kind kind, String name, int version, byte[] bytes) {
        return Oracle.MAPPER.createObjectNode().put("kind", kind.text()).put("name", name)
            .put("version", version).put("hex", HexFormat.of().formatHex(bytes));
    }

    private void print(ObjectNode line) throws IOException {
        out.println(Oracle.MAPPER.writeValueAsString(line));
    }
}
