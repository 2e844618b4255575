import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Reads metadata records, one in hex per line; at an empty line applies them to Apache's image and
 * prints that image as the records of a snapshot, ended by an empty line. A line "-" applies what
 * came so far and goes on; a line "=" makes an image of what came since the empty line alone, and
 * prints whether it equals the image printed last.
 */
public class ImageJudge {
    static final MetadataRecordSerde SERDE = new MetadataRecordSerde();

    static String hex(ApiMessageAndVersion record) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(SERDE.recordSize(record, cache));
        SERDE.write(record, cache, new ByteBufferAccessor(buffer));
        return HexFormat.of().formatHex(buffer.array());
    }

    static void print(MetadataImage image) {
        RecordListWriter writer = new RecordListWriter();
        ImageWriterOptions options = new ImageWriterOptions.Builder(image.features().metadataVersionOrThrow())
            .setEligibleLeaderReplicasEnabled(true).build();
        image.write(writer, options);
        for (ApiMessageAndVersion record : writer.records()) System.out.println(hex(record));
        System.out.println();
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        MetadataImage image = MetadataImage.EMPTY;
        MetadataImage printed = image;
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        for (String line; (line = input.readLine()) != null; ) {
            if (line.isEmpty()) {
                printed = delta.apply(new MetadataProvenance(1, 1, 1, true));
                print(printed);
                delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
            } else if (line.equals("=")) {
                image = delta.apply(new MetadataProvenance(1, 1, 1, true));
                System.out.println(image.equals(printed) ? "equal" : image + "\nis not\n" + printed);
                System.out.println();
                delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
            } else if (line.equals("-")) {
                image = delta.apply(new MetadataProvenance(1, 1, 1, true));
                delta = new MetadataDelta.Builder().setImage(image).build();
            } else {
                ByteBuffer value = ByteBuffer.wrap(HexFormat.of().parseHex(line));
                delta.replay(SERDE.read(new ByteBufferAccessor(value), value.remaining()).message());
            }
        }
    }
}
