package judge;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import org.apache.kafka.common.header.Header;

/**
 * One row of a view as bytes that say every column of it, and their MD5.
 *
 * <p>A column is its name, {@code =} and its value. Text and bytes stand behind their length
 * ({@code 3:abc}, null is {@code -:}), numbers and booleans before a semicolon (null is {@code -;}),
 * a list behind its size in brackets ({@code [2]}, null is {@code [-]}); a struct is its fields.
 * {@code tests.spark.apache_views_digests} makes the same of a frame.
 */
final class CanonicalRow {
    private final Bytes row = new Bytes();
    private final MessageDigest md5;

    CanonicalRow() {
        try {
            md5 = MessageDigest.getInstance("MD5");
        } catch (NoSuchAlgorithmException broken) {
            throw new IllegalStateException(broken);
        }
    }

    /** Values behind one another. */
    static final class Bytes extends ByteArrayOutputStream {
        private void all(String text) {
            writeBytes(text.getBytes(StandardCharsets.UTF_8));
        }

        private Bytes put(byte[] value) {
            all(value == null ? "-:" : value.length + ":");
            if (value != null) {
                writeBytes(value);
            }
            return this;
        }

        private Bytes put(String value) {
            return put(value == null ? null : value.getBytes(StandardCharsets.UTF_8));
        }

        private byte[] array() {
            return buf;
        }
    }

    private CanonicalRow named(String name) {
        row.all(name + "=");
        return this;
    }

    CanonicalRow with(String name, Number value) {
        named(name).row.all(value == null ? "-;" : value + ";");
        return this;
    }

    CanonicalRow with(String name, boolean value) {
        named(name).row.all(value + ";");
        return this;
    }

    CanonicalRow with(String name, String value) {
        named(name).row.put(value);
        return this;
    }

    CanonicalRow with(String name, ByteBuffer value) {
        byte[] copy = null;
        if (value != null) {
            copy = new byte[value.remaining()];
            value.duplicate().get(copy);
        }
        named(name).row.put(copy);
        return this;
    }

    CanonicalRow with(String name, int[] numbers) {
        named(name).row.all("[" + numbers.length + "]");
        for (int each : numbers) {
            row.all(each + ";");
        }
        return this;
    }

    /** Null where there are none, as in Spark's own source. */
    CanonicalRow with(String name, Header[] headers) {
        named(name).row.all(headers.length == 0 ? "[-]" : "[" + headers.length + "]");
        for (Header each : headers) {
            row.put(each.key()).put(each.value());
        }
        return this;
    }

    /** JSON by what it says, however it is spelt; null is no text at all. */
    CanonicalRow withJson(String name, JsonNode value) {
        Bytes said = new Bytes();
        if (value != null) {
            say(value, said);
        }
        named(name).row.put(value == null ? null : said.toByteArray());
        return this;
    }

    private static void say(JsonNode value, Bytes said) {
        switch (value.getNodeType()) {
            case NULL -> said.all("null");
            case BOOLEAN -> said.all(value.booleanValue() ? "true" : "false");
            case STRING -> said.put(value.textValue());
            case NUMBER -> said.all(value.isFloatingPointNumber()
                ? String.format("d%016x", Double.doubleToLongBits(value.doubleValue()))
                : "i" + value.longValue() + ";");
            case ARRAY -> {
                said.all("[");
                value.forEach(each -> say(each, said));
                said.all("]");
            }
            case OBJECT -> {
                said.all("{");
                value.properties().forEach(each -> {
                    said.put(each.getKey());
                    say(each.getValue(), said);
                });
                said.all("}");
            }
            default -> throw new IllegalArgumentException(value.toString());
        }
    }

    /** The digest of the row; the next one begins. */
    byte[] end() {
        md5.update(row.array(), 0, row.size());
        row.reset();
        return md5.digest();
    }
}
