package org.apache.kafka.coordinator.group;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.HeartbeatResponseData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.LeaveGroupResponseData;
import org.apache.kafka.common.message.ListGroupsResponseData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.common.runtime.CoordinatorExecutor;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorTimer;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupCurrentMemberAssignmentKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupCurrentMemberAssignmentValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMemberMetadataKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMemberMetadataValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupPartitionMetadataKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupPartitionMetadataValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupRegularExpressionKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupRegularExpressionValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMetadataKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMetadataValue;
import org.apache.kafka.coordinator.group.generated.GroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetricsShard;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Apache's consumer and share groups without a broker: its group manager under a clock, timers and tasks that
 * this class drives. Each call returns its records, already replayed, as the runtime does.
 */
public final class JudgedGroups {
    private static final InetAddress LOOPBACK = new InetSocketAddress("127.0.0.1", 0).getAddress();
    private static final GroupCoordinatorRecordSerde SERDE = new GroupCoordinatorRecordSerde();

    private final Clock clock = new Clock();
    private final Timers timers = new Timers();
    private final Tasks tasks = new Tasks();
    private final GroupMetadataManager manager;
    private MetadataImage image = MetadataImage.EMPTY;

    /** A result of the manager, with what it wrote. */
    public record Written<T>(T response, List<CoordinatorRecord> records) { }

    public JudgedGroups(Map<String, String> settings, long nowMs) {
        clock.nowMs = nowMs;
        LogContext logs = new LogContext();
        SnapshotRegistry snapshots = new SnapshotRegistry(logs);
        AbstractConfig all = new AbstractConfig(
            Utils.mergeConfigs(List.of(GroupCoordinatorConfig.CONFIG_DEF, ShareGroupConfig.CONFIG_DEF)),
            settings, false);
        GroupCoordinatorConfig config = new GroupCoordinatorConfig(all);
        ShareGroupConfig share = new ShareGroupConfig(all);
        manager = new GroupMetadataManager.Builder()
            .withLogContext(logs)
            .withSnapshotRegistry(snapshots)
            .withTime(clock)
            .withTimer(timers)
            .withExecutor(tasks)
            .withConfig(config)
            .withGroupConfigManager(new GroupConfigManager(Map.of(), config, share))
            .withGroupCoordinatorMetricsShard(new GroupCoordinatorMetricsShard(
                snapshots, Map.of(), new TopicPartition("__consumer_offsets", 0)))
            .build();
    }

    /** Makes a broker, whose rack counts for the hash of the topics. */
    public void broker(int id, String rack) {
        change(List.of(new RegisterBrokerRecord().setBrokerId(id).setRack(rack)));
    }

    /** Makes a topic whose partitions have one replica each. */
    public void topic(String name, Uuid id, List<Integer> replicas) {
        List<ApiMessage> records = new ArrayList<>();
        records.add(new TopicRecord().setName(name).setTopicId(id));
        for (int partition = 0; partition < replicas.size(); partition++) {
            records.add(new PartitionRecord()
                .setTopicId(id)
                .setPartitionId(partition)
                .setReplicas(List.of(replicas.get(partition)))
                .setIsr(List.of(replicas.get(partition)))
                .setLeader(replicas.get(partition)));
        }
        change(records);
    }

    public void deleteTopic(Uuid id) {
        change(List.of(new RemoveTopicRecord().setTopicId(id)));
    }

    private void change(List<ApiMessage> records) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        records.forEach(delta::replay);
        image = delta.apply(new MetadataProvenance(image.provenance().lastContainedOffset() + 1, 0, 0, true));
        manager.onMetadataUpdate(
            new KRaftCoordinatorMetadataDelta(delta), new KRaftCoordinatorMetadataImage(image));
    }

    public Written<ConsumerGroupHeartbeatResponseData> heartbeat(
        ConsumerGroupHeartbeatRequestData request, String clientId, InetAddress address, short version
    ) {
        CoordinatorResult<ConsumerGroupHeartbeatResponseData, CoordinatorRecord> result =
            manager.consumerGroupHeartbeat(
                context(ApiKeys.CONSUMER_GROUP_HEARTBEAT, version, clientId, address), request);
        return new Written<>(result.response(), done(result));
    }

    /** Joins as a member of the classic protocol; the answer may come with a later call. */
    public List<CoordinatorRecord> join(
        JoinGroupRequestData request, String clientId, short version,
        CompletableFuture<JoinGroupResponseData> answer
    ) {
        return done(manager.classicGroupJoin(
            context(ApiKeys.JOIN_GROUP, version, clientId, LOOPBACK),
            request, answer));
    }

    /** Asks for an assignment; the answer may come with a later call. */
    public List<CoordinatorRecord> sync(
        SyncGroupRequestData request, short version, CompletableFuture<SyncGroupResponseData> answer
    ) {
        return done(manager.classicGroupSync(classicContext(ApiKeys.SYNC_GROUP, version), request, answer));
    }

    public Written<HeartbeatResponseData> classicHeartbeat(HeartbeatRequestData request, short version) {
        CoordinatorResult<HeartbeatResponseData, CoordinatorRecord> result =
            manager.classicGroupHeartbeat(classicContext(ApiKeys.HEARTBEAT, version), request);
        return new Written<>(result.response(), done(result));
    }

    public Written<LeaveGroupResponseData> classicLeave(LeaveGroupRequestData request, short version) {
        CoordinatorResult<LeaveGroupResponseData, CoordinatorRecord> result =
            manager.classicGroupLeave(classicContext(ApiKeys.LEAVE_GROUP, version), request);
        return new Written<>(result.response(), done(result));
    }

    public List<ListGroupsResponseData.ListedGroup> list() {
        return manager.listGroups(Set.of(), Set.of(), Long.MAX_VALUE);
    }

    private static RequestContext classicContext(ApiKeys key, short version) {
        return context(key, version, "walker", LOOPBACK);
    }

    /** The manager, whose share groups {@link JudgedShareGroups} drives. */
    GroupMetadataManager manager() {
        return manager;
    }

    static RequestContext context(
        ApiKeys key, short version, String clientId, InetAddress address
    ) {
        return new RequestContext(
            new RequestHeader(key, version, clientId, 0),
            "0", address, KafkaPrincipal.ANONYMOUS, new ListenerName("PLAINTEXT"),
            SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false);
    }

    /** Lets time pass, and runs the timers that are due, in the order of their deadlines. */
    public List<List<CoordinatorRecord>> advance(long ms) {
        long end = clock.nowMs + ms;
        List<List<CoordinatorRecord>> written = new ArrayList<>();
        for (Timers.Timer timer = timers.first(end); timer != null; timer = timers.first(end)) {
            clock.nowMs = timer.deadlineMs();
            timers.cancel(timer.key());
            written.add(done(timer.operation().generateRecords()));
        }
        clock.nowMs = end;
        return written;
    }

    /** Runs the tasks that were scheduled, such as the resolution of regular expressions. */
    public List<List<CoordinatorRecord>> runTasks() throws Throwable {
        List<List<CoordinatorRecord>> written = new ArrayList<>();
        List<Supplier<CoordinatorResult<Void, CoordinatorRecord>>> due = tasks.take();
        for (Supplier<CoordinatorResult<Void, CoordinatorRecord>> each : due) {
            written.add(replayed(each.get().records()));
        }
        return written;
    }

    public List<ConsumerGroupDescribeResponseData.DescribedGroup> describe(List<String> groups) {
        return manager.consumerGroupDescribe(groups, Long.MAX_VALUE);
    }

    /** The tombstones of a group, which is then gone. */
    public List<CoordinatorRecord> delete(String group) {
        manager.validateDeleteGroup(group);
        List<CoordinatorRecord> records = new ArrayList<>();
        manager.group(group).createGroupTombstoneRecords(records);
        return replayed(records);
    }

    /** Takes a record of another coordinator. */
    public void load(byte[] key, byte[] value) {
        replay(SERDE.deserialize(ByteBuffer.wrap(key), value == null ? null : ByteBuffer.wrap(value)));
    }

    public void loaded() {
        manager.onLoaded();
    }

    public static byte[] key(CoordinatorRecord record) {
        return SERDE.serializeKey(record);
    }

    public static byte[] value(CoordinatorRecord record) {
        return SERDE.serializeValue(record);
    }

    /** Does what the runtime does: replays what was written, and says that it is committed. */
    <T> List<CoordinatorRecord> done(CoordinatorResult<T, CoordinatorRecord> result) {
        if (result.replayRecords()) {
            replayed(result.records());
        }
        if (result.appendFuture() != null) {
            result.appendFuture().complete(null);
        }
        return result.records();
    }

    List<CoordinatorRecord> replayed(List<CoordinatorRecord> records) {
        records.forEach(this::replay);
        return records;
    }

    private void replay(CoordinatorRecord record) {
        ApiMessage key = record.key();
        ApiMessage value = Optional.ofNullable(record.value()).map(ApiMessageAndVersion::message).orElse(null);
        switch (key.apiKey()) {
            case 2 -> manager.replay((GroupMetadataKey) key, (GroupMetadataValue) value);
            case 3 -> manager.replay((ConsumerGroupMetadataKey) key, (ConsumerGroupMetadataValue) value);
            case 4 -> manager.replay(
                (ConsumerGroupPartitionMetadataKey) key, (ConsumerGroupPartitionMetadataValue) value);
            case 5 -> manager.replay(
                (ConsumerGroupMemberMetadataKey) key, (ConsumerGroupMemberMetadataValue) value);
            case 6 -> manager.replay(
                (ConsumerGroupTargetAssignmentMetadataKey) key,
                (ConsumerGroupTargetAssignmentMetadataValue) value);
            case 7 -> manager.replay(
                (ConsumerGroupTargetAssignmentMemberKey) key,
                (ConsumerGroupTargetAssignmentMemberValue) value);
            case 8 -> manager.replay(
                (ConsumerGroupCurrentMemberAssignmentKey) key,
                (ConsumerGroupCurrentMemberAssignmentValue) value);
            case 10, 11, 12, 13, 14, 15 -> JudgedShareGroups.replay(manager, key, value);
            case 17, 19, 20, 21, 22, 23 -> JudgedStreamsGroups.replay(manager, key, value);
            case 16 -> manager.replay(
                (ConsumerGroupRegularExpressionKey) key, (ConsumerGroupRegularExpressionValue) value);
            default -> throw new IllegalArgumentException("record type " + key.apiKey());
        }
    }

    private static final class Clock implements Time {
        private long nowMs;

        @Override
        public long milliseconds() {
            return nowMs;
        }

        @Override
        public long nanoseconds() {
            return nowMs * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            nowMs += ms;
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    private final class Timers implements CoordinatorTimer<CoordinatorRecord> {
        private record Timer(
            String key, long deadlineMs, long number, TimeoutOperation<CoordinatorRecord> operation) { }

        private final Map<String, Timer> all = new LinkedHashMap<>();
        private long set;

        @Override
        public void schedule(
            String key, long delay, TimeUnit unit, boolean retry, TimeoutOperation<CoordinatorRecord> operation
        ) {
            all.put(key, new Timer(key, clock.nowMs + unit.toMillis(delay), set++, operation));
        }

        @Override
        public void schedule(
            String key, long delay, TimeUnit unit, boolean retry, long backoff,
            TimeoutOperation<CoordinatorRecord> operation
        ) {
            schedule(key, delay, unit, retry, operation);
        }

        @Override
        public void scheduleIfAbsent(
            String key, long delay, TimeUnit unit, boolean retry, TimeoutOperation<CoordinatorRecord> operation
        ) {
            if (!all.containsKey(key)) {
                schedule(key, delay, unit, retry, operation);
            }
        }

        @Override
        public void cancel(String key) {
            all.remove(key);
        }

        @Override
        public boolean isScheduled(String key) {
            return all.containsKey(key);
        }

        private Timer first(long endMs) {
            return all.values().stream()
                .filter(each -> each.deadlineMs <= endMs)
                .min(Comparator.comparingLong(Timer::deadlineMs).thenComparingLong(Timer::number))
                .orElse(null);
        }
    }

    private static final class Tasks implements CoordinatorExecutor<CoordinatorRecord> {
        private final Map<String, Supplier<CoordinatorResult<Void, CoordinatorRecord>>> all =
            new LinkedHashMap<>();

        @Override
        public <R> boolean schedule(
            String key, TaskRunnable<R> task, TaskOperation<CoordinatorRecord, R> operation
        ) {
            return all.putIfAbsent(key, () -> {
                try {
                    return operation.onComplete(task.run(), null);
                } catch (Throwable failure) {
                    return operation.onComplete(null, failure);
                }
            }) == null;
        }

        @Override
        public boolean isScheduled(String key) {
            return all.containsKey(key);
        }

        @Override
        public void cancel(String key) {
            all.remove(key);
        }

        private List<Supplier<CoordinatorResult<Void, CoordinatorRecord>>> take() {
            List<Supplier<CoordinatorResult<Void, CoordinatorRecord>>> taken = List.copyOf(all.values());
            all.clear();
            return taken;
        }
    }
}
