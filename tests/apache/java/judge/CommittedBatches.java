package judge;

import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.storage.internals.log.AbortedTxn;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.TransactionIndex;

/**
 * Which batches of a log a read_committed consumer of Apache's is given: the broker's transaction
 * indexes name what was aborted, and the consumer drops it batch by batch up to each marker; what
 * follows the first record of a transaction that is open at the end, the broker does not give.
 */
final class CommittedBatches {
    private final Deque<AbortedTxn> aborted;
    private final Set<Long> aborting = new HashSet<>();
    private final long lastStableOffset;

    CommittedBatches(List<Path> segments) throws IOException {
        List<AbortedTxn> found = new ArrayList<>();
        Map<Long, Long> open = new HashMap<>();
        for (Path segment : segments) {
            found.addAll(indexed(segment));
            LogFiles.walk(segment, (file, position, batch) -> {
                if (batch.isTransactional() && !batch.isControlBatch()) {
                    open.putIfAbsent(batch.producerId(), batch.baseOffset());
                } else if (marker(batch) != null) {
                    open.remove(batch.producerId());
                }
            });
        }
        found.sort(Comparator.comparingLong(AbortedTxn::firstOffset));
        aborted = new ArrayDeque<>(found);
        lastStableOffset = open.values().stream().mapToLong(Long::longValue).min().orElse(Long.MAX_VALUE);
    }

    private static List<AbortedTxn> indexed(Path segment) throws IOException {
        long base = ReplicaLog.baseOffset(segment);
        File file = LogFileUtils.transactionIndexFile(segment.getParent().toFile(), base);
        if (!file.exists()) {
            return List.of();
        }
        try (TransactionIndex index = new TransactionIndex(base, file)) {
            return index.allAbortedTxns();
        }
    }

    /** The type of a transaction's marker, null for every other batch. */
    private static ControlRecordType marker(DefaultRecordBatch batch) {
        if (!batch.isControlBatch()) {
            return null;
        }
        Iterator<Record> records = batch.iterator();
        ControlRecordType type = records.hasNext() ? ControlRecordType.parse(records.next().key()) : null;
        return type == ControlRecordType.ABORT || type == ControlRecordType.COMMIT ? type : null;
    }

    /** Whether the consumer is given a batch; asked of every batch of the log, in order. */
    boolean has(DefaultRecordBatch batch) {
        while (!aborted.isEmpty() && aborted.peek().firstOffset() <= batch.lastOffset()) {
            aborting.add(aborted.poll().producerId());
        }
        if (marker(batch) == ControlRecordType.ABORT) {
            aborting.remove(batch.producerId());
        }
        boolean isAborted = batch.isTransactional() && aborting.contains(batch.producerId());
        return !batch.isControlBatch() && !isAborted && batch.baseOffset() < lastStableOffset;
    }
}
