package judge;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

/** Random record batches and message sets, built by Apache's MemoryRecordsBuilder. */
final class RandomRecords {
    private static final CompressionType[] CODECS = CompressionType.values();
    private static final int BUFFER_BYTES = 512;
    private static final int LARGE_VALUE_BYTES = 100_000;

    private final Chance chance;

    RandomRecords(Chance chance) {
        this.chance = chance;
    }

    /** One or more concatenated batches, the magic and codec drawn. */
    byte[] several(int magic, CompressionType codec, TimestampType stamps) {
        int count = 1 + chance.below(3);
        List<byte[]> parts = new ArrayList<>();
        int size = 0;
        for (int i = 0; i < count; i++) {
            byte[] part = batch(magic, codec, stamps);
            parts.add(part);
            size += part.length;
        }
        ByteBuffer all = ByteBuffer.allocate(size);
        parts.forEach(all::put);
        return all.array();
    }

    /** One batch of format 2, uncompressed half of the time. */
    byte[] batch() {
        CompressionType codec = chance.oneIn(2) ? CompressionType.NONE : CODECS[chance.below(CODECS.length)];
        return batch(2, codec, TimestampType.CREATE_TIME);
    }

    byte[] batch(int magic, CompressionType codec, TimestampType stamps) {
        if (magic == 2 && codec == CompressionType.NONE && stamps == TimestampType.CREATE_TIME) {
            if (chance.oneIn(5)) {
                return control();
            }
            if (chance.oneIn(10)) {
                return empty();
            }
        }
        return data(magic, codec, stamps);
    }

    private byte[] data(int magic, CompressionType codec, TimestampType stamps) {
        boolean modern = magic == 2;
        boolean idempotent = modern && chance.oneIn(2);
        long horizon = modern && chance.oneIn(5) ? Math.abs(chance.integer(48)) : RecordBatch.NO_TIMESTAMP;
        long baseOffset = chance.oneIn(2) ? 0 : chance.random.nextLong() >>> (2 + chance.below(60));
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            new ByteBufferOutputStream(BUFFER_BYTES), (byte) magic, Compression.of(codec).build(),
            magic == 0 ? TimestampType.NO_TIMESTAMP_TYPE : stamps, baseOffset, chance.below(1 << 30),
            idempotent ? Math.abs(chance.integer(40)) : RecordBatch.NO_PRODUCER_ID,
            idempotent ? (short) chance.below(Short.MAX_VALUE + 1) : RecordBatch.NO_PRODUCER_EPOCH,
            idempotent ? sequence() : RecordBatch.NO_SEQUENCE, idempotent && chance.oneIn(2), false,
            modern ? chance.below(100) - 1 : RecordBatch.NO_PARTITION_LEADER_EPOCH, Integer.MAX_VALUE, horizon);
        append(builder, magic, baseOffset, idempotent, stamps);
        return MessageForm.array(builder.build().buffer());
    }

    private int sequence() {
        return chance.oneIn(3) ? Integer.MAX_VALUE - chance.below(3) : chance.below(1000);
    }

    private void append(
        MemoryRecordsBuilder builder, int magic, long baseOffset, boolean dense, TimestampType stamps) {
        long offset = baseOffset;
        long stamp = chance.oneIn(6) ? 0 : 1_700_000_000_000L + chance.below(1 << 30);
        int count = chance.oneIn(12) ? 150 : 1 + chance.below(6);
        for (int i = 0; i < count; i++) {
            long timestamp = magic == 0 ? RecordBatch.NO_TIMESTAMP : stamp;
            byte[] value = chance.oneIn(4) ? null : value(i == 0);
            byte[] key = chance.oneIn(3) ? null : chance.bytes();
            Header[] headers = magic == 2 ? headers() : new Header[0];
            builder.appendWithOffset(offset, timestamp, key, value, headers);
            stamp = Math.max(0, stamp + chance.below(2000) - 500);
            offset += dense || chance.oneIn(2) ? 1 : 1 + chance.below(300);
        }
        if (magic == 2 && chance.oneIn(6)) {
            builder.overrideLastOffset(offset + chance.below(5));
        }
    }

    private byte[] value(boolean first) {
        if (!first || !chance.large() || !chance.oneIn(12)) {
            return chance.oneIn(4) ? "kafka ".repeat(chance.below(200)).getBytes(StandardCharsets.UTF_8) : chance.bytes();
        }
        byte[] value = new byte[LARGE_VALUE_BYTES];
        byte[] pattern = new byte[1 + chance.below(50_000)];
        chance.random.nextBytes(pattern);
        for (int i = 0; i < value.length; i++) {
            value[i] = pattern[i % pattern.length];
        }
        return value;
    }

    private Header[] headers() {
        Header[] headers = new Header[chance.oneIn(2) ? 0 : 1 + chance.below(3)];
        for (int i = 0; i < headers.length; i++) {
            headers[i] = new RecordHeader(chance.oneIn(3) ? "ключ" : "h" + i, chance.oneIn(4) ? null : chance.bytes());
        }
        return headers;
    }

    /** A batch whose records compaction took away: the header alone is left. */
    private byte[] empty() {
        ByteBuffer buffer = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        long base = chance.below(1 << 20);
        DefaultRecordBatch.writeEmptyHeader(
            buffer, (byte) 2, chance.below(1000), (short) chance.below(5), chance.below(1000), base,
            base + chance.below(50), chance.below(9), TimestampType.CREATE_TIME, 1_700_000_000_000L,
            chance.oneIn(2), chance.oneIn(4));
        buffer.flip();
        return MessageForm.array(buffer);
    }

    private byte[] control() {
        long offset = chance.below(1 << 20);
        long stamp = 1_700_000_000_000L + chance.below(1000);
        int epoch = chance.below(50);
        ByteBuffer buffer = ByteBuffer.allocate(BUFFER_BYTES);
        switch (chance.below(6)) {
            case 0:
                return bytes(MemoryRecords.withLeaderChangeMessage(offset, stamp, epoch, buffer, leaderChange()));
            case 1:
                return bytes(MemoryRecords.withSnapshotHeaderRecord(
                    offset, stamp, epoch, buffer, new SnapshotHeaderRecord().setLastContainedLogTimestamp(stamp)));
            case 2:
                return bytes(MemoryRecords.withSnapshotFooterRecord(
                    offset, stamp, epoch, buffer, new SnapshotFooterRecord()));
            case 3:
                return bytes(MemoryRecords.withKRaftVersionRecord(
                    offset, stamp, epoch, buffer, new KRaftVersionRecord().setKRaftVersion((short) 1)));
            case 4:
                return bytes(MemoryRecords.withVotersRecord(offset, stamp, epoch, buffer, new VotersRecord()));
            default:
                ControlRecordType type = chance.oneIn(2) ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
                return bytes(MemoryRecords.withEndTransactionMarker(
                    offset, stamp, epoch, chance.below(5000), (short) chance.below(9),
                    new EndTransactionMarker(type, chance.below(7))));
        }
    }

    private LeaderChangeMessage leaderChange() {
        return new LeaderChangeMessage().setLeaderId(chance.below(9)).setVoters(
            List.of(new LeaderChangeMessage.Voter().setVoterId(1), new LeaderChangeMessage.Voter().setVoterId(2)));
    }

    private static byte[] bytes(MemoryRecords records) {
        return MessageForm.array(records.buffer());
    }
}
