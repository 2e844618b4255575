package kafka.server.share;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.PriorityQueue;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import org.apache.kafka.clients.consumer.internals.ShareAcquireMode;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.FetchResponseData.AbortedTransaction;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.server.purgatory.DelayedOperationPurgatory;
import org.apache.kafka.server.share.acknowledge.ShareAcknowledgementBatch;
import org.apache.kafka.server.share.fetch.InFlightBatch;
import org.apache.kafka.server.share.fetch.InFlightState;
import org.apache.kafka.server.share.fetch.ShareAcquiredRecords;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateResult;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateResult;
import org.apache.kafka.server.share.persister.PartitionFactory;
import org.apache.kafka.server.share.persister.PartitionStateBatchData;
import org.apache.kafka.server.share.persister.Persister;
import org.apache.kafka.server.share.persister.PersisterStateBatch;
import org.apache.kafka.server.share.persister.ReadShareGroupStateParameters;
import org.apache.kafka.server.share.persister.ReadShareGroupStateResult;
import org.apache.kafka.server.share.persister.ReadShareGroupStateSummaryParameters;
import org.apache.kafka.server.share.persister.ReadShareGroupStateSummaryResult;
import org.apache.kafka.server.share.persister.TopicData;
import org.apache.kafka.server.share.persister.WriteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.WriteShareGroupStateResult;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;

/** Apache's own SharePartition under a story; its persister answers when the story says so. */
public final class ToldSharePartition {
    private static final Uuid TOPIC = new Uuid(1, 2);
    private static final String GROUP = "g";
    private static final long PRODUCER = 7;

    private final Time clock;
    private final StoryTimer timer = new StoryTimer();
    private final GroupConfigManager groups;
    private final SharePartition partition;
    private final List<CompletableFuture<WriteShareGroupStateResult>> writes = new ArrayList<>();
    private final List<String> events = new ArrayList<>();

    public ToldSharePartition(
        Time clock, int locksMax, int deliveriesMax, int lockMs, long start, String stored
    ) throws Exception {
        this.clock = clock;
        Properties given = new Properties();
        given.put("process.roles", "broker");
        given.put("node.id", "1");
        given.put("controller.quorum.voters", "2@127.0.0.1:9");
        given.put("controller.listener.names", "CONTROLLER");
        given.put("listeners", "PLAINTEXT://127.0.0.1:1");
        KafkaConfig config = new KafkaConfig(given, false);
        groups = new GroupConfigManager(
            Map.of(), config.groupCoordinatorConfig(), config.shareGroupConfig());
        partition = new SharePartition(
            GROUP, new TopicIdPartition(TOPIC, new TopicPartition("t", 0)), 3, locksMax,
            deliveriesMax, lockMs, timer, clock, new StoryPersister(start, batches(stored)),
            replicas(), groups, null);
        partition.maybeInitialize().whenComplete((ignored, error) -> note("load", error));
    }

    /** A ReplicaManager with nothing but the purgatory that share partitions wake. */
    private ReplicaManager replicas() throws Exception {
        Class<?> unsafe = Class.forName("sun.misc.Unsafe");
        Field instance = unsafe.getDeclaredField("theUnsafe");
        instance.setAccessible(true);
        Method allocate = unsafe.getMethod("allocateInstance", Class.class);
        ReplicaManager made = (ReplicaManager) allocate.invoke(instance.get(null), ReplicaManager.class);
        Field purgatory = ReplicaManager.class.getDeclaredField("delayedShareFetchPurgatory");
        purgatory.setAccessible(true);
        purgatory.set(made, new DelayedOperationPurgatory<DelayedShareFetch>(
            "ShareFetch", timer, 1, 1000, false, false));
        return made;
    }

    public void limit(int deliveriesMax, int lockMs, int locksMax, boolean renews) {
        Properties own = new Properties();
        own.put("share.delivery.count.limit", String.valueOf(deliveriesMax));
        own.put("share.record.lock.duration.ms", String.valueOf(lockMs));
        own.put("share.partition.max.record.locks", String.valueOf(locksMax));
        own.put("share.renew.acknowledge.enable", String.valueOf(renews));
        groups.updateGroupConfig(GROUP, own);
    }

    public void acquire(
        String member, int mode, int batchSize, int recordsMax, long offset, String batches,
        String aborted
    ) {
        List<AbortedTransaction> transactions = new ArrayList<>();
        if (!aborted.equals("-")) {
            for (String each : aborted.split(",")) {
                transactions.add(
                    new AbortedTransaction().setProducerId(PRODUCER).setFirstOffset(Long.parseLong(each)));
            }
        }
        FetchPartitionData data = new FetchPartitionData(
            Errors.NONE, 1 << 20, 0, records(batches), Optional.empty(), OptionalLong.empty(),
            Optional.of(transactions), OptionalInt.empty(), false);
        ShareAcquiredRecords acquired = partition.acquire(
            member, ShareAcquireMode.forId((byte) mode), batchSize, recordsMax, offset, data,
            transactions.isEmpty() ? FetchIsolation.HIGH_WATERMARK : FetchIsolation.TXN_COMMITTED);
        events.add("acquired " + acquired.count() + " " + acquired.acquiredRecords().stream()
            .map(r -> r.firstOffset() + "-" + r.lastOffset() + ":" + r.deliveryCount())
            .collect(Collectors.joining(",")));
    }

    /** "FIRST-LAST" for each batch; ":t" if it is of a transaction, ":a", ":c" for a marker. */
    private static MemoryRecords records(String batches) {
        ByteBuffer all = ByteBuffer.allocate(1 << 16);
        for (String each : batches.split(",")) {
            if (each.equals("-")) {
                continue;
            }
            String[] parts = each.split("[-:]");
            long first = Long.parseLong(parts[0]);
            long last = Long.parseLong(parts[1]);
            String kind = parts.length > 2 ? parts[2] : "";
            if (kind.equals("a") || kind.equals("c")) {
                ControlRecordType type = kind.equals("a") ? ControlRecordType.ABORT : ControlRecordType.COMMIT;
                all.put(MemoryRecords.withEndTransactionMarker(
                    first, 0, 0, PRODUCER, (short) 0, new EndTransactionMarker(type, 0)).buffer());
                continue;
            }
            boolean isOpen = kind.equals("t");
            MemoryRecordsBuilder builder = MemoryRecords.builder(
                ByteBuffer.allocate(256), (byte) 2, Compression.NONE, TimestampType.CREATE_TIME, first,
                0, isOpen ? PRODUCER : -1, (short) (isOpen ? 0 : -1), isOpen ? 0 : -1, isOpen, 0);
            builder.appendWithOffset(first, 0, new byte[1], new byte[1]);
            if (last > first) {
                builder.appendWithOffset(last, 0, new byte[1], new byte[1]);
            }
            all.put(builder.build().buffer());
        }
        all.flip();
        return MemoryRecords.readableRecords(all);
    }

    public void acknowledge(String name, String member, String batches) {
        List<ShareAcknowledgementBatch> asked = new ArrayList<>();
        for (String each : batches.split(",")) {
            String[] parts = each.split("[-:]");
            List<Byte> types = new ArrayList<>();
            for (String type : parts[2].split("\\.")) {
                types.add(Byte.valueOf(type));
            }
            asked.add(new ShareAcknowledgementBatch(
                Long.parseLong(parts[0]), Long.parseLong(parts[1]), types));
        }
        partition.acknowledge(member, asked).whenComplete((ignored, error) -> note(name, error));
    }

    public void release(String name, String member) {
        partition.releaseAcquiredRecords(member).whenComplete((ignored, error) -> note(name, error));
    }

    public void moveLogStart(long offset) {
        partition.updateCacheAndOffsets(offset);
    }

    public void written(int code) {
        writes.remove(0).complete(new WriteShareGroupStateResult.Builder()
            .setTopicsData(List.of(new TopicData<>(
                TOPIC, List.of(PartitionFactory.newPartitionErrorData(0, (short) code, null)))))
            .build());
    }

    public void passTime() {
        timer.runDue();
    }

    /** What happened since the last call, then the whole state. */
    public String told() {
        StringBuilder text = new StringBuilder(String.join("; ", events));
        events.clear();
        boolean canAcquire = partition.canAcquireRecords();
        text.append(" | ").append(partition.startOffset()).append(' ').append(partition.endOffset())
            .append(" complete ").append(partition.deliveryCompleteCount())
            .append(" next ").append(partition.nextFetchOffset()).append(canAcquire ? " free" : " full")
            .append(" |");
        for (InFlightBatch batch : partition.cachedState().values()) {
            if (batch.offsetState() == null) {
                text.append(' ').append(batch.firstOffset()).append('-').append(batch.lastOffset())
                    .append(':').append(state(batch.batchState().id(), batch.batchDeliveryCount(),
                        batch.batchMemberId(), batch.batchHasOngoingStateTransition()));
                continue;
            }
            text.append(" [");
            for (Map.Entry<Long, InFlightState> each : batch.offsetState().entrySet()) {
                InFlightState one = each.getValue();
                text.append(' ').append(each.getKey()).append(':').append(state(one.state().id(),
                    one.deliveryCount(), one.memberId(), one.hasOngoingStateTransition()));
            }
            text.append(" ]");
        }
        return text.toString();
    }

    private static String state(byte id, int count, String member, boolean isChanging) {
        return id + "x" + count + member + (isChanging ? "*" : "");
    }

    private void note(String name, Throwable error) {
        Throwable cause = error == null || error.getCause() == null ? error : error.getCause();
        events.add(name + " " + (cause == null ? "0" : Errors.forException(cause).code()
            + " " + cause.getMessage()));
    }

    private static List<PersisterStateBatch> batches(String stored) {
        List<PersisterStateBatch> found = new ArrayList<>();
        for (String each : stored.equals("-") ? new String[0] : stored.split(",")) {
            String[] parts = each.split("[-:x]");
            found.add(new PersisterStateBatch(Long.parseLong(parts[0]), Long.parseLong(parts[1]),
                Byte.parseByte(parts[2]), Short.parseShort(parts[3])));
        }
        return found;
    }

    /** Runs tasks in the order of their deadlines, equal ones as they were added. */
    private final class StoryTimer implements Timer {
        private record Entry(long deadlineMs, long number, TimerTask task) { }

        private final PriorityQueue<Entry> entries = new PriorityQueue<>(
            (one, other) -> one.deadlineMs() == other.deadlineMs()
                ? Long.compare(one.number(), other.number())
                : Long.compare(one.deadlineMs(), other.deadlineMs()));
        private long count;

        @Override
        public void add(TimerTask task) {
            entries.add(new Entry(clock.hiResClockMs() + task.delayMs, count++, task));
            new TimerTaskEntry(task, 0);
        }

        void runDue() {
            while (!entries.isEmpty() && entries.peek().deadlineMs() <= clock.hiResClockMs()) {
                TimerTask task = entries.poll().task();
                if (!task.isCancelled()) {
                    task.run();
                }
            }
        }

        @Override
        public boolean advanceClock(long timeoutMs) {
            throw new UnsupportedOperationException();
        }

        @Override
        public int size() {
            return entries.size();
        }

        @Override
        public void close() {
            entries.clear();
        }
    }

    /** One stored state; writes wait until the story answers them. */
    private final class StoryPersister implements Persister {
        private final long start;
        private final List<PersisterStateBatch> stored;

        StoryPersister(long start, List<PersisterStateBatch> stored) {
            this.start = start;
            this.stored = stored;
        }

        @Override
        public CompletableFuture<ReadShareGroupStateResult> readState(ReadShareGroupStateParameters asked) {
            return CompletableFuture.completedFuture(new ReadShareGroupStateResult.Builder()
                .setTopicsData(List.of(new TopicData<>(TOPIC, List.of(
                    PartitionFactory.newPartitionAllData(0, 5, start, (short) 0, null, stored)))))
                .build());
        }

        @Override
        public CompletableFuture<WriteShareGroupStateResult> writeState(WriteShareGroupStateParameters asked) {
            PartitionStateBatchData data =
                asked.groupTopicPartitionData().topicsData().get(0).partitions().get(0);
            events.add("write " + data.stateEpoch() + " " + data.leaderEpoch() + " " + data.startOffset()
                + " " + data.deliveryCompleteCount() + " " + data.stateBatches().stream()
                .map(b -> b.firstOffset() + "-" + b.lastOffset() + ":" + b.deliveryState() + "x" + b.deliveryCount())
                .collect(Collectors.joining(",")));
            CompletableFuture<WriteShareGroupStateResult> future = new CompletableFuture<>();
            writes.add(future);
            return future;
        }

        @Override
        public CompletableFuture<InitializeShareGroupStateResult> initializeState(
            InitializeShareGroupStateParameters asked) {
            throw new UnsupportedOperationException();
        }

        @Override
        public CompletableFuture<DeleteShareGroupStateResult> deleteState(DeleteShareGroupStateParameters asked) {
            throw new UnsupportedOperationException();
        }

        @Override
        public CompletableFuture<ReadShareGroupStateSummaryResult> readSummary(
            ReadShareGroupStateSummaryParameters asked) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void stop() {
        }
    }
}
