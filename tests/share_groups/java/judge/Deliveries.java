package judge;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;

/** Who is given which record, how often, by what was acknowledged. */
final class Deliveries {
    private static final int LOCK_MS = 2_000;
    private static final long QUIET_MS = 3 * LOCK_MS;
    private static final int FORMER = 5;

    private Deliveries() {
    }

    /** Two members share three partitions: every record comes once. */
    static Object implicit(ShareGroup group) throws Exception {
        group.create(3);
        group.produce(3, 300);
        List<KafkaShareConsumer<byte[], byte[]>> members = List.of(group.member(), group.member());
        Map<Integer, Integer> counts = new TreeMap<>();
        ShareGroup.until(() -> {
            members.forEach(member -> take(member, counts));
            return counts.size() == 300;
        });
        quiet(members.get(0), counts);
        quiet(members.get(1), counts);
        return Map.of("records", counts.size(), "counts", new TreeSet<>(counts.values()));
    }

    private static void take(KafkaShareConsumer<byte[], byte[]> member, Map<Integer, Integer> counts) {
        member.poll(ShareGroup.POLL).forEach(record -> counts.put(ShareGroup.number(record), ShareGroup.count(record)));
    }

    private static void quiet(KafkaShareConsumer<byte[], byte[]> member, Map<Integer, Integer> counts) {
        long end = System.nanoTime() + QUIET_MS * 1_000_000;
        while (System.nanoTime() < end) {
            take(member, counts);
        }
    }

    /** Accepted and rejected records are final, released ones come again with a higher count. */
    static Object explicit(ShareGroup group) throws Exception {
        group.create(1);
        group.produce(1, 12);
        KafkaShareConsumer<byte[], byte[]> member = group.explicit();
        Set<String> seen = new TreeSet<>();
        AcknowledgeType[] first = {AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT};
        ShareGroup.until(() -> {
            for (ConsumerRecord<byte[], byte[]> record : member.poll(ShareGroup.POLL)) {
                int number = ShareGroup.number(record);
                int count = ShareGroup.count(record);
                AcknowledgeType type = count == 1 ? first[number % 3] : AcknowledgeType.ACCEPT;
                member.acknowledge(record, type);
                seen.add(number + " " + count + " " + type);
            }
            member.commitSync().values().forEach(each -> each.ifPresent(Deliveries::fail));
            return seen.size() >= 16;
        });
        return seen;
    }

    private static void fail(RuntimeException error) {
        throw error;
    }

    /** A record that is always released is given up at the limit. */
    static Object limit(ShareGroup group) throws Exception {
        group.create(1);
        group.produce(1, 1);
        KafkaShareConsumer<byte[], byte[]> member = group.explicit();
        List<Integer> counts = new ArrayList<>();
        ShareGroup.until(() -> {
            released(member, counts);
            return counts.size() >= 5;
        });
        long end = System.nanoTime() + QUIET_MS * 1_000_000;
        while (System.nanoTime() < end) {
            released(member, counts);
        }
        return counts;
    }

    private static void released(KafkaShareConsumer<byte[], byte[]> member, List<Integer> counts) {
        for (ConsumerRecord<byte[], byte[]> record : member.poll(ShareGroup.POLL)) {
            counts.add(ShareGroup.count(record));
            member.acknowledge(record, AcknowledgeType.RELEASE);
        }
    }

    /** A member that leaves releases what it holds, at once. */
    static Object closed(ShareGroup group) throws Exception {
        group.create(1);
        group.produce(1, 10);
        KafkaShareConsumer<byte[], byte[]> leaving = group.explicit();
        int held = ShareGroup.some(leaving).size();
        group.leave(leaving);
        return Map.of("held", held, "again", again(group, 10));
    }

    /** Return record and count of what another member is given. */
    private static Map<Integer, Integer> again(ShareGroup group, int records) {
        KafkaShareConsumer<byte[], byte[]> other = group.member();
        Map<Integer, Integer> counts = new TreeMap<>();
        ShareGroup.until(() -> {
            take(other, counts);
            return counts.size() == records;
        });
        return counts;
    }

    /** Records of a member that does not acknowledge come to another one when their lock ends. */
    static Object lockEnds(ShareGroup group) throws Exception {
        group.create(1);
        group.configure("share.record.lock.duration.ms", Integer.toString(LOCK_MS));
        group.produce(1, 10);
        KafkaShareConsumer<byte[], byte[]> silent = group.explicit();
        int held = ShareGroup.some(silent).size();
        return Map.of("held", held, "again", again(group, 10));
    }

    /** A renewed lock lasts longer than a lock. */
    static Object renewed(ShareGroup group) throws Exception {
        group.create(1);
        group.configure("share.record.lock.duration.ms", Integer.toString(LOCK_MS));
        group.produce(1, 1);
        KafkaShareConsumer<byte[], byte[]> slow = group.explicit();
        ConsumerRecord<byte[], byte[]> record = ShareGroup.some(slow).get(0);
        KafkaShareConsumer<byte[], byte[]> other = group.explicit();
        Map<Integer, Integer> stolen = new TreeMap<>();
        long end = System.nanoTime() + QUIET_MS * 1_000_000;
        while (System.nanoTime() < end) {
            slow.acknowledge(record, AcknowledgeType.RENEW);
            slow.commitSync().values().forEach(each -> each.ifPresent(Deliveries::fail));
            take(other, stolen);
            slow.poll(ShareGroup.POLL);
        }
        slow.acknowledge(record, AcknowledgeType.ACCEPT);
        slow.commitSync().values().forEach(each -> each.ifPresent(Deliveries::fail));
        quiet(other, stolen);
        return stolen;
    }

    /** In record limit mode a poll gives no more records than were asked for. */
    static Object recordLimit(ShareGroup group) throws Exception {
        group.create(1);
        group.produce(1, 10);
        KafkaShareConsumer<byte[], byte[]> member =
            group.member(Map.of("share.acquire.mode", "record_limit", "max.poll.records", 3));
        List<Integer> sizes = new ArrayList<>();
        Set<Integer> numbers = new HashSet<>();
        ShareGroup.until(() -> {
            int size = 0;
            for (ConsumerRecord<byte[], byte[]> record : member.poll(ShareGroup.POLL)) {
                numbers.add(ShareGroup.number(record));
                size++;
            }
            sizes.add(size);
            return numbers.size() == 10;
        });
        sizes.removeIf(size -> size == 0);
        return sizes;
    }

    /** Records of aborted transactions are not given to a group that reads committed ones. */
    static Object readCommitted(ShareGroup group) throws Exception {
        group.create(1);
        group.configure("share.isolation.level", "read_committed");
        try (KafkaProducer<byte[], byte[]> producer = group.producer(Map.of("transactional.id", group.name))) {
            producer.initTransactions();
            for (int number = 0; number < 9; number++) {
                producer.beginTransaction();
                producer.send(group.record(0, number)).get();
                if (number % 3 == 1) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
        return again(group, 6);
    }

    /** By default a group begins at the end of the log, when its first member reads it. */
    static Object latest(ShareGroup group) throws Exception {
        group.create(1);
        group.configure("share.auto.offset.reset", "latest");
        group.produce(1, FORMER);
        KafkaShareConsumer<byte[], byte[]> member = group.member();
        Map<Integer, Integer> counts = new TreeMap<>();
        try (KafkaProducer<byte[], byte[]> producer = group.producer(Map.of())) {
            int[] next = {FORMER};
            ShareGroup.until(() -> {
                producer.send(group.record(0, next[0]++));
                take(member, counts);
                return !counts.isEmpty();
            });
        }
        counts.keySet().removeIf(number -> number >= FORMER);
        return counts;
    }
}
