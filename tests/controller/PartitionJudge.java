import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Reads one change of a partition per line, fields separated by ";", and prints the record that
 * Apache's controller makes of it in hex, or "none". Fields: metadata.version, min.insync.replicas,
 * whether eligible replicas are kept, kind of election, recovery state, the partition as a record,
 * lists of ids (ISR, replicas, removing, adding, unclean shutdowns, brokers that may lead), then
 * the directories of brokers and those assigned to replicas, "id=hex+hex" each.
 */
public class PartitionJudge {
    static final MetadataRecordSerde SERDE = new MetadataRecordSerde();

    static List<Integer> ids(String text) {
        List<Integer> found = new ArrayList<>();
        for (String each : text.split(",")) if (!each.isEmpty()) found.add(Integer.parseInt(each));
        return found;
    }

    static Uuid uuid(String hex) {
        ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(hex));
        return new Uuid(bytes.getLong(), bytes.getLong());
    }

    static Map<Integer, List<Uuid>> directories(String text) {
        Map<Integer, List<Uuid>> found = new TreeMap<>();
        for (String each : text.split(",")) {
            if (each.isEmpty()) continue;
            String[] parts = each.split("=");
            List<Uuid> of = new ArrayList<>();
            if (parts.length > 1) for (String hex : parts[1].split("\\+")) of.add(uuid(hex));
            of.sort(Uuid::compareTo);
            found.put(Integer.parseInt(parts[0]), of);
        }
        return found;
    }

    static Uuid defaultDirectory(List<Uuid> of) {
        if (of == null) return DirectoryId.UNASSIGNED;
        if (of.isEmpty()) return DirectoryId.MIGRATING;
        return of.size() == 1 ? of.get(0) : DirectoryId.UNASSIGNED;
    }

    static String changed(String line) {
        String[] fields = line.split(";", -1);
        ByteBuffer value = ByteBuffer.wrap(HexFormat.of().parseHex(fields[5]));
        PartitionRecord record = (PartitionRecord)
            SERDE.read(new ByteBufferAccessor(value), value.remaining()).message();
        PartitionRegistration before = new PartitionRegistration(record);
        List<Integer> accepted = ids(fields[11]);
        Map<Integer, List<Uuid>> online = directories(fields[12]);
        PartitionChangeBuilder builder = new PartitionChangeBuilder(
            before, record.topicId(), record.partitionId(),
            id -> accepted.contains(id) && online.containsKey(id)
                && DirectoryId.isOnline(before.directory(id), online.get(id)),
            MetadataVersion.fromFeatureLevel(Short.parseShort(fields[0])),
            Integer.parseInt(fields[1]), fields[2].equals("1"));
        builder.setElection(PartitionChangeBuilder.Election.valueOf(fields[3]));
        builder.setTargetLeaderRecoveryState(LeaderRecoveryState.of(Byte.parseByte(fields[4])));
        builder.setTargetIsr(ids(fields[6])).setTargetReplicas(ids(fields[7]));
        builder.setTargetRemoving(ids(fields[8])).setTargetAdding(ids(fields[9]));
        if (!fields[10].isEmpty()) builder.setUncleanShutdownReplicas(ids(fields[10]));
        directories(fields[13]).forEach((id, of) -> builder.setDirectory(id, of.get(0)));
        builder.setDefaultDirProvider(id -> defaultDirectory(online.get(id)));
        return builder.build().map(PartitionJudge::hex).orElse("none");
    }

    static String hex(ApiMessageAndVersion record) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(SERDE.recordSize(record, cache));
        SERDE.write(record, cache, new ByteBufferAccessor(buffer));
        return HexFormat.of().formatHex(buffer.array());
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = input.readLine()) != null; ) System.out.println(changed(line));
    }
}
