package judge;

import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;

/** A clock that stands where a story has set it. */
final class StoryClock implements Time {
    private long nowMs;

    void set(long ms) {
        nowMs = ms;
    }

    @Override
    public long milliseconds() {
        return nowMs;
    }

    @Override
    public long nanoseconds() {
        return nowMs * 1_000_000L;
    }

    @Override
    public void sleep(long ms) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void waitObject(Object it, Supplier<Boolean> condition, long deadlineMs) {
        throw new UnsupportedOperationException();
    }
}
