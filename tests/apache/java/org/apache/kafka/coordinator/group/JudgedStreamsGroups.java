package org.apache.kafka.coordinator.group;

import java.net.InetAddress;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopic;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.generated.StreamsGroupCurrentMemberAssignmentKey;
import org.apache.kafka.coordinator.group.generated.StreamsGroupCurrentMemberAssignmentValue;
import org.apache.kafka.coordinator.group.generated.StreamsGroupMemberMetadataKey;
import org.apache.kafka.coordinator.group.generated.StreamsGroupMemberMetadataValue;
import org.apache.kafka.coordinator.group.generated.StreamsGroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.StreamsGroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.StreamsGroupTargetAssignmentMemberKey;
import org.apache.kafka.coordinator.group.generated.StreamsGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.generated.StreamsGroupTargetAssignmentMetadataKey;
import org.apache.kafka.coordinator.group.generated.StreamsGroupTargetAssignmentMetadataValue;
import org.apache.kafka.coordinator.group.generated.StreamsGroupTopologyKey;
import org.apache.kafka.coordinator.group.generated.StreamsGroupTopologyValue;

/** The streams groups of {@link JudgedGroups}. */
public final class JudgedStreamsGroups {
    private final JudgedGroups groups;

    /** A result of the manager, with what it wrote and the internal topics that are to be made. */
    public record Result(
        StreamsGroupHeartbeatResponseData response, List<CoordinatorRecord> records, Map<String, Integer> topics) { }

    public JudgedStreamsGroups(JudgedGroups groups) {
        this.groups = groups;
    }

    public Result heartbeat(StreamsGroupHeartbeatRequestData request, String clientId, InetAddress address) {
        var result = groups.manager().streamsGroupHeartbeat(
            JudgedGroups.context(ApiKeys.STREAMS_GROUP_HEARTBEAT, (short) 0, clientId, address), request);
        return new Result(
            result.response().data(), groups.done(result),
            partitions(result.response().creatableTopics()));
    }

    private static Map<String, Integer> partitions(Map<String, CreatableTopic> topics) {
        Map<String, Integer> found = new TreeMap<>();
        topics.forEach((name, topic) -> found.put(name, topic.numPartitions()));
        return found;
    }

    public List<StreamsGroupDescribeResponseData.DescribedGroup> describe(List<String> names) {
        return groups.manager().streamsGroupDescribe(names, Long.MAX_VALUE);
    }

    public void checkCommit(String group, String member, int epoch, String topic, int partition) {
        groups.manager().streamsGroup(group)
            .validateOffsetCommit(member, null, epoch, false, (short) 9)
            .validate(topic, Uuid.ZERO_UUID, partition);
    }

    public void checkFetch(String group, String member, int epoch) {
        groups.manager().streamsGroup(group).validateOffsetFetch(member, epoch, Long.MAX_VALUE);
    }

    static void replay(GroupMetadataManager manager, ApiMessage key, ApiMessage value) {
        switch (key.apiKey()) {
            case 17 -> manager.replay((StreamsGroupMetadataKey) key, (StreamsGroupMetadataValue) value);
            case 19 -> manager.replay(
                (StreamsGroupMemberMetadataKey) key, (StreamsGroupMemberMetadataValue) value);
            case 20 -> manager.replay(
                (StreamsGroupTargetAssignmentMetadataKey) key,
                (StreamsGroupTargetAssignmentMetadataValue) value);
            case 21 -> manager.replay(
                (StreamsGroupTargetAssignmentMemberKey) key,
                (StreamsGroupTargetAssignmentMemberValue) value);
            case 22 -> manager.replay(
                (StreamsGroupCurrentMemberAssignmentKey) key,
                (StreamsGroupCurrentMemberAssignmentValue) value);
            case 23 -> manager.replay((StreamsGroupTopologyKey) key, (StreamsGroupTopologyValue) value);
            default -> throw new IllegalArgumentException("record type " + key.apiKey());
        }
    }
}
