package org.apache.kafka.coordinator.group;

import java.net.InetAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterShareGroupOffsetsRequestData.AlterShareGroupOffsetsRequestTopicCollection;
import org.apache.kafka.common.message.AlterShareGroupOffsetsResponseData;
import org.apache.kafka.common.message.DeleteShareGroupOffsetsRequestData;
import org.apache.kafka.common.message.DeleteShareGroupOffsetsResponseData.DeleteShareGroupOffsetsResponseTopic;
import org.apache.kafka.common.message.DeleteShareGroupStateRequestData;
import org.apache.kafka.common.message.ShareGroupDescribeResponseData;
import org.apache.kafka.common.message.ShareGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ShareGroupHeartbeatResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.group.generated.ShareGroupCurrentMemberAssignmentKey;
import org.apache.kafka.coordinator.group.generated.ShareGroupCurrentMemberAssignmentValue;
import org.apache.kafka.coordinator.group.generated.ShareGroupMemberMetadataKey;
import org.apache.kafka.coordinator.group.generated.ShareGroupMemberMetadataValue;
import org.apache.kafka.coordinator.group.generated.ShareGroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.ShareGroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.ShareGroupStatePartitionMetadataKey;
import org.apache.kafka.coordinator.group.generated.ShareGroupStatePartitionMetadataValue;
import org.apache.kafka.coordinator.group.generated.ShareGroupTargetAssignmentMemberKey;
import org.apache.kafka.coordinator.group.generated.ShareGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.generated.ShareGroupTargetAssignmentMetadataKey;
import org.apache.kafka.coordinator.group.generated.ShareGroupTargetAssignmentMetadataValue;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;

/** The share groups of {@link JudgedGroups}: what a request wrote, and what it asks the persister. */
public final class JudgedShareGroups {
    private final JudgedGroups groups;

    /** A call to the persister: partitions by topic, each with state epoch and start offset. */
    public record Asked(Map<String, Map<Integer, List<Long>>> topics) { }

    /** A result of the manager, with what it wrote and asked. */
    public record Result<T>(T response, List<CoordinatorRecord> records, Asked asked) { }

    public JudgedShareGroups(JudgedGroups groups) {
        this.groups = groups;
    }

    public Result<ShareGroupHeartbeatResponseData> heartbeat(
        ShareGroupHeartbeatRequestData request, String clientId, InetAddress address
    ) {
        var result = groups.manager().shareGroupHeartbeat(
            JudgedGroups.context(ApiKeys.SHARE_GROUP_HEARTBEAT, (short) 1, clientId, address), request);
        return new Result<>(
            result.response().getKey(), groups.done(result),
            result.response().getValue().map(JudgedShareGroups::asked).orElse(null));
    }

    /** Takes the persister's answer about partitions whose state was to begin. */
    public List<CoordinatorRecord> begun(String group, Map<Uuid, Set<Integer>> topics, boolean succeeded) {
        CoordinatorResult<Void, CoordinatorRecord> result = succeeded
            ? groups.manager().initializeShareGroupState(group, topics)
            : groups.manager().uninitializeShareGroupState(group, topics);
        return groups.done(result);
    }

    public List<ShareGroupDescribeResponseData.DescribedGroup> describe(List<String> names) {
        return groups.manager().shareGroupDescribe(names, Long.MAX_VALUE);
    }

    public Result<AlterShareGroupOffsetsResponseData> alter(
        String group, AlterShareGroupOffsetsRequestTopicCollection topics
    ) {
        var result = groups.manager().alterShareGroupOffsets(group, topics);
        return new Result<>(
            result.response().getKey(), groups.done(result), asked(result.response().getValue()));
    }

    /** Begins to delete the state of topics; the response has those that cannot be. */
    public Result<List<DeleteShareGroupOffsetsResponseTopic>> deleteOffsets(
        DeleteShareGroupOffsetsRequestData request
    ) {
        GroupMetadataManager manager = groups.manager();
        manager.shareGroup(request.groupId()).validateDeleteGroup();
        List<DeleteShareGroupOffsetsResponseTopic> refused = new ArrayList<>();
        List<CoordinatorRecord> records = new ArrayList<>();
        List<DeleteShareGroupStateRequestData.DeleteStateData> asked =
            manager.sharePartitionsEligibleForOffsetDeletion(request.groupId(), request, refused, records);
        Map<String, Map<Integer, List<Long>>> topics = new TreeMap<>();
        asked.forEach(topic -> topic.partitions().forEach(each -> topics
            .computeIfAbsent(topic.topicId().toString(), __ -> new TreeMap<>())
            .put(each.partition(), List.of())));
        return new Result<>(refused, groups.replayed(records), new Asked(topics));
    }

    /** Ends the deletion of the state of topics, by id and name. */
    public List<CoordinatorRecord> deletedOffsets(String group, Map<Uuid, String> topics) {
        List<CoordinatorRecord> records = new ArrayList<>();
        groups.manager().completeDeleteShareGroupOffsets(group, topics, records);
        return groups.replayed(records);
    }

    /** Begins to delete a group, with the state of its partitions. */
    public Result<Void> delete(String group) {
        GroupMetadataManager manager = groups.manager();
        manager.shareGroup(group).validateDeleteGroup();
        List<CoordinatorRecord> records = new ArrayList<>();
        Map<String, Map<Integer, List<Long>>> topics = new TreeMap<>();
        manager.shareGroupBuildPartitionDeleteRequest(group, records).ifPresent(
            each -> each.groupTopicPartitionData().topicsData().forEach(topic -> topic.partitions().forEach(
                one -> topics.computeIfAbsent(topic.topicId().toString(), __ -> new TreeMap<>())
                    .put(one.partition(), List.of()))));
        return new Result<>(null, groups.replayed(records), new Asked(topics));
    }

    /** Forgets topics that are deleted. */
    public List<CoordinatorRecord> cleanUp(Set<Uuid> topics) {
        return groups.done(groups.manager().maybeCleanupShareGroupState(topics));
    }

    private static Asked asked(InitializeShareGroupStateParameters parameters) {
        Map<String, Map<Integer, List<Long>>> topics = new TreeMap<>();
        parameters.groupTopicPartitionData().topicsData().forEach(topic -> topic.partitions().forEach(
            each -> topics.computeIfAbsent(topic.topicId().toString(), __ -> new TreeMap<>())
                .put(each.partition(), List.of((long) each.stateEpoch(), each.startOffset()))));
        return new Asked(topics);
    }

    static void replay(GroupMetadataManager manager, ApiMessage key, ApiMessage value) {
        switch (key.apiKey()) {
            case 10 -> manager.replay(
                (ShareGroupMemberMetadataKey) key, (ShareGroupMemberMetadataValue) value);
            case 11 -> manager.replay((ShareGroupMetadataKey) key, (ShareGroupMetadataValue) value);
            case 12 -> manager.replay(
                (ShareGroupTargetAssignmentMetadataKey) key,
                (ShareGroupTargetAssignmentMetadataValue) value);
            case 13 -> manager.replay(
                (ShareGroupTargetAssignmentMemberKey) key, (ShareGroupTargetAssignmentMemberValue) value);
            case 14 -> manager.replay(
                (ShareGroupCurrentMemberAssignmentKey) key,
                (ShareGroupCurrentMemberAssignmentValue) value);
            case 15 -> manager.replay(
                (ShareGroupStatePartitionMetadataKey) key, (ShareGroupStatePartitionMetadataValue) value);
            default -> throw new IllegalArgumentException("record type " + key.apiKey());
        }
    }
}
