package judge;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ShareGroupDescription;
import org.apache.kafka.clients.admin.SharePartitionOffsetInfo;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;

/** What an administrator sees of a share group, and changes. */
final class Administration {
    private Administration() {
    }

    /** Start offset of partition 0, -1 without one. */
    static long startOffset(ShareGroup group) {
        try {
            SharePartitionOffsetInfo found = offsets(group).get(new TopicPartition(group.name, 0));
            return found == null ? -1 : found.startOffset();
        } catch (Exception error) {
            throw new AssertionError(error);
        }
    }

    private static Map<TopicPartition, SharePartitionOffsetInfo> offsets(ShareGroup group) throws Exception {
        return group.admin.listShareGroupOffsets(Map.of(group.name, new ListShareGroupOffsetsSpec()))
            .partitionsToOffsetInfo(group.name).get();
    }

    private static Map<String, Object> shown(ShareGroup group) throws Exception {
        ShareGroupDescription description =
            group.admin.describeShareGroups(List.of(group.name)).all().get().get(group.name);
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("state", description.groupState().toString());
        shown.put("members", description.members().size());
        Map<String, String> places = new TreeMap<>();
        offsets(group).forEach((place, info) ->
            places.put(place.toString(), info == null ? "none" : "lag " + info.lag().orElse(-1L)));
        shown.put("offsets", places);
        shown.put("listed", group.admin.listGroups(ListGroupsOptions.forShareGroups()).all().get().stream()
            .filter(each -> each.groupId().equals(group.name))
            .map(each -> each.type().orElse(GroupType.UNKNOWN) + " " + each.groupState().orElseThrow())
            .toList());
        return shown;
    }

    private static void readAll(ShareGroup group, int records) {
        KafkaShareConsumer<byte[], byte[]> member = group.member();
        int[] read = {0};
        ShareGroup.until(() -> {
            read[0] += member.poll(ShareGroup.POLL).count();
            return read[0] == records;
        });
        member.commitSync();
        group.leave(member);
    }

    /** A group with a member, and without. */
    static Object described(ShareGroup group) throws Exception {
        group.create(2);
        group.produce(2, 20);
        readAll(group, 20);
        KafkaShareConsumer<byte[], byte[]> member = group.member();
        group.produce(2, 4);
        ShareGroup.some(member);
        String state = group.admin.describeShareGroups(List.of(group.name)).all().get()
            .get(group.name).groupState().toString();
        group.leave(member);
        return List.of(state, shown(group));
    }

    /** An altered offset is where members read on. */
    static Object reset(ShareGroup group) throws Exception {
        group.create(1);
        group.produce(1, 10);
        readAll(group, 10);
        TopicPartition place = new TopicPartition(group.name, 0);
        group.admin.alterShareGroupOffsets(group.name, Map.of(place, 4L)).all().get();
        long start = startOffset(group);
        readAll(group, 6);
        return List.of(start, shown(group));
    }

    /** Offsets and groups go; a group with a member stays. */
    static Object deleted(ShareGroup group) throws Exception {
        group.create(1);
        group.produce(1, 10);
        KafkaShareConsumer<byte[], byte[]> member = group.member();
        ShareGroup.some(member);
        String refused = refusal(group);
        group.leave(member);
        group.admin.deleteShareGroupOffsets(group.name, Set.of(group.name)).all().get();
        Map<String, Object> without = shown(group);
        String gone = refusal(group);
        return List.of(refused, without, gone, refusal(group));
    }

    private static String refusal(ShareGroup group) throws InterruptedException {
        try {
            group.admin.deleteShareGroups(List.of(group.name)).all().get();
            return "deleted";
        } catch (ExecutionException refused) {
            return refused.getCause().getClass().getSimpleName();
        }
    }
}
