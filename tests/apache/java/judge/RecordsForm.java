package judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.Iterator;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

/** Record batches and message sets as JSON: what Apache's MemoryRecords sees in them. */
final class RecordsForm {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    private RecordsForm() {
    }

    static JsonNode toJson(byte[] bytes) {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes));
        ObjectNode json = NODES.objectNode();
        ArrayNode batches = json.putArray("batches");
        int seen = 0;
        for (Iterator<MutableRecordBatch> it = records.batchIterator(); it.hasNext(); ) {
            MutableRecordBatch batch = it.next();
            batch.ensureValid();
            seen += batch.sizeInBytes();
            batches.add(batch(batch));
        }
        return json.put("trailingBytes", bytes.length - seen);
    }

    private static ObjectNode batch(RecordBatch batch) {
        ObjectNode json = NODES.objectNode();
        json.put("baseOffset", batch.baseOffset());
        json.put("lastOffset", batch.lastOffset());
        json.put("sizeInBytes", batch.sizeInBytes());
        json.put("magic", batch.magic());
        json.put("compression", batch.compressionType().name);
        json.put("timestampType", batch.timestampType().name);
        json.put("maxTimestamp", batch.maxTimestamp());
        boolean modern = batch.magic() >= RecordBatch.MAGIC_VALUE_V2;
        if (modern) {
            modernFields(json, (DefaultRecordBatch) batch);
        }
        ArrayNode records = json.putArray("records");
        for (Record record : batch) {
            records.add(record(record, modern));
        }
        return json;
    }

    private static void modernFields(ObjectNode json, DefaultRecordBatch batch) {
        json.put("partitionLeaderEpoch", batch.partitionLeaderEpoch());
        json.put("crc", batch.checksum());
        json.put("baseTimestamp", batch.baseTimestamp());
        json.put("producerId", batch.producerId());
        json.put("producerEpoch", batch.producerEpoch());
        json.put("baseSequence", batch.baseSequence());
        json.put("lastSequence", batch.lastSequence());
        json.put("isTransactional", batch.isTransactional());
        json.put("isControlBatch", batch.isControlBatch());
        if (batch.deleteHorizonMs().isPresent()) {
            json.put("deleteHorizonMs", batch.deleteHorizonMs().getAsLong());
        } else {
            json.putNull("deleteHorizonMs");
        }
        json.put("count", batch.countOrNull());
    }

    private static ObjectNode record(Record record, boolean modern) {
        ObjectNode json = NODES.objectNode();
        json.put("offset", record.offset());
        json.put("timestamp", record.timestamp());
        json.put("key", bytes(record.key()));
        json.put("value", bytes(record.value()));
        if (modern) {
            json.put("sequence", record.sequence());
            ArrayNode headers = json.putArray("headers");
            for (Header header : record.headers()) {
                headers.addObject().put("key", header.key()).put("value", header.value());
            }
        }
        return json;
    }

    private static byte[] bytes(ByteBuffer buffer) {
        return buffer == null ? null : MessageForm.array(buffer);
    }
}
