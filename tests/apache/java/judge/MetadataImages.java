package judge;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.loader.MetadataBatchLoader;
import org.apache.kafka.metadata.SupportedConfigChecker;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * The metadata before an offset, made by Apache's own loader of the newest snapshot and the log
 * behind it. As in a node, a metadata transaction counts only once it has ended.
 */
final class MetadataImages {
    private MetadataImage image = MetadataImage.EMPTY;

    private MetadataImages() {
    }

    /** The image before {@code end} of a metadata log; without the log, what the snapshot says. */
    static MetadataImage at(Path directory, long end, boolean withLog) throws IOException {
        MetadataImages images = new MetadataImages();
        long start = 0;
        Path newest = null;
        for (Path snapshot : LogFiles.named(directory, ".checkpoint")) {
            long offset = Long.parseLong(snapshot.getFileName().toString().substring(0, 20));
            if (offset > 0 && offset <= end) {
                newest = snapshot;
                start = offset;
            }
        }
        if (newest != null) {
            images.load(newest, start);
        }
        if (withLog) {
            images.replay(LogFiles.named(directory, ".log"), start, end);
        }
        return images.image;
    }

    private void load(Path snapshot, long end) throws IOException {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        LogFiles.walk(snapshot, (file, position, batch) -> {
            for (ApiMessageAndVersion each : records(batch, 0, Long.MAX_VALUE)) {
                delta.replay(each.message());
            }
        });
        delta.finishSnapshot();
        image = delta.apply(new MetadataProvenance(end - 1, 0, 0, true));
    }

    private void replay(List<Path> segments, long start, long end) throws IOException {
        MetadataBatchLoader loader = new MetadataBatchLoader(new LogContext(), Time.SYSTEM, (what, cause) -> {
            throw new IllegalStateException(what, cause);
        }, (delta, made, manifest) -> image = made, SupportedConfigChecker.TRUE);
        loader.resetToImage(image);
        for (Path segment : segments) {
            LogFiles.walk(segment, (file, position, batch) -> {
                List<ApiMessageAndVersion> records = records(batch, start, end);
                if (!records.isEmpty()) {
                    loader.loadBatch(Batch.data(Math.max(batch.baseOffset(), start), batch.partitionLeaderEpoch(),
                        batch.maxTimestamp(), batch.sizeInBytes(), records), LeaderAndEpoch.UNKNOWN);
                }
            });
        }
        loader.maybeFlushBatches(LeaderAndEpoch.UNKNOWN, true);
    }

    private static List<ApiMessageAndVersion> records(DefaultRecordBatch batch, long start, long end) {
        List<ApiMessageAndVersion> found = new ArrayList<>();
        if (!batch.isControlBatch()) {
            for (Record record : batch) {
                if (record.offset() >= start && record.offset() < end) {
                    found.add(LogFiles.decoded(record));
                }
            }
        }
        return found;
    }
}
