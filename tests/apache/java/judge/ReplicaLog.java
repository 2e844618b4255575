package judge;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.metadata.properties.MetaProperties;
import org.apache.kafka.metadata.properties.PropertiesUtils;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/** One partition in a stopped node's log directory; offsets of checkpoints are -1 where there is none. */
record ReplicaLog(
        String node, TopicPartition key, List<Path> segments, long checkpointedStart, long highWatermark) {
    private static final List<String> GOING_OR_COMING =
        List.of(LogFileUtils.DELETE_DIR_SUFFIX, LogFileUtils.FUTURE_DIR_SUFFIX, LogFileUtils.STRAY_DIR_SUFFIX);

    /** All partitions of an entry of log.dirs. */
    static List<ReplicaLog> of(Path data) throws IOException {
        String properties = data.resolve("meta.properties").toString();
        MetaProperties meta = new MetaProperties.Builder(PropertiesUtils.readPropertiesFile(properties)).build();
        String node = Integer.toString(meta.nodeId().orElseThrow());
        Map<TopicPartition, Long> starts = checkpoint(data.resolve("log-start-offset-checkpoint"));
        Map<TopicPartition, Long> watermarks = checkpoint(data.resolve("replication-offset-checkpoint"));
        List<ReplicaLog> found = new ArrayList<>();
        for (Path directory : directories(data)) {
            TopicPartition key = UnifiedLog.parseTopicPartitionName(directory.toFile());
            found.add(new ReplicaLog(node, key, segments(directory),
                starts.getOrDefault(key, -1L), watermarks.getOrDefault(key, -1L)));
        }
        return found;
    }

    private static List<Path> directories(Path data) throws IOException {
        try (Stream<Path> entries = Files.list(data)) {
            return entries.filter(Files::isDirectory)
                .filter(each -> GOING_OR_COMING.stream().noneMatch(each.toString()::endsWith)).sorted().toList();
        }
    }

    private static List<Path> segments(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.filter(each -> LogFileUtils.isLogFile(each.toFile()))
                .sorted(Comparator.comparingLong(ReplicaLog::baseOffset)).toList();
        }
    }

    /** What Apache's class reads, which would make a file that is not there. */
    private static Map<TopicPartition, Long> checkpoint(Path path) throws IOException {
        File file = path.toFile();
        return file.exists() ? new OffsetCheckpointFile(file, null).read() : new HashMap<>();
    }

    static long baseOffset(Path segment) {
        return LogFileUtils.offsetFromFile(segment.toFile());
    }

    /** Where a consumer begins: what is before it may still be on the disk. */
    long earliest() {
        return Math.max(checkpointedStart, segments.isEmpty() ? 0 : baseOffset(segments.get(0)));
    }

    /** The offset behind the last whole batch. */
    long end() throws IOException {
        if (segments.isEmpty()) {
            return -1;
        }
        Path last = segments.get(segments.size() - 1);
        long[] end = {baseOffset(last)};
        LogFiles.walk(last, (file, position, batch) -> end[0] = batch.nextOffset());
        return end[0];
    }
}
