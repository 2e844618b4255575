package judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.NullNode;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.KRaftVersionRecordJsonConverter;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.LeaderChangeMessageJsonConverter;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotFooterRecordJsonConverter;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecordJsonConverter;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.message.VotersRecordJsonConverter;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.ControlRecordUtils;
import org.apache.kafka.common.record.internal.Record;

/** Control records of the metadata log and of snapshots, as Apache's converters write them. */
final class ControlJson {
    private ControlJson() {
    }

    /** What a control record says; JSON's null for one that says nothing. */
    static JsonNode of(ControlRecordType type, Record record) {
        switch (type) {
            case LEADER_CHANGE -> {
                LeaderChangeMessage message = ControlRecordUtils.deserializeLeaderChangeMessage(record);
                return LeaderChangeMessageJsonConverter.write(message, message.version());
            }
            case SNAPSHOT_HEADER -> {
                SnapshotHeaderRecord message = ControlRecordUtils.deserializeSnapshotHeaderRecord(record);
                return SnapshotHeaderRecordJsonConverter.write(message, message.version());
            }
            case SNAPSHOT_FOOTER -> {
                SnapshotFooterRecord message = ControlRecordUtils.deserializeSnapshotFooterRecord(record);
                return SnapshotFooterRecordJsonConverter.write(message, message.version());
            }
            case KRAFT_VERSION -> {
                KRaftVersionRecord message = ControlRecordUtils.deserializeKRaftVersionRecord(record);
                return KRaftVersionRecordJsonConverter.write(message, message.version());
            }
            case KRAFT_VOTERS -> {
                VotersRecord message = ControlRecordUtils.deserializeVotersRecord(record);
                return VotersRecordJsonConverter.write(message, message.version());
            }
            default -> {
                return NullNode.getInstance();
            }
        }
    }
}
