package judge;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

/** One member of a group, in a thread of its own, until it is told to leave. */
abstract class Member implements Runnable {
    static final Duration POLL = Duration.ofMillis(500);

    final String group;
    final String name;
    private final String bootstrap;
    private volatile boolean isOver;

    Member(String bootstrap, String group, String name) {
        this.bootstrap = bootstrap;
        this.group = group;
        this.name = name;
    }

    /** Read until {@link #leave}. */
    abstract void read() throws Exception;

    final void leave() {
        isOver = true;
    }

    final boolean isOver() {
        return isOver;
    }

    /** A member that ends by itself says why, so that nothing is taken for a group at rest. */
    @Override
    public final void run() {
        try {
            read();
            Lines.print("x " + name + "\n");
        } catch (Exception problem) {
            Lines.print("e " + group + " " + name + " " + problem.toString().replace('\n', ' ') + "\n");
        }
    }

    final Map<String, Object> settings() {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("client.id", name);
        settings.put("fetch.max.wait.ms", "2000");
        settings.put("default.api.timeout.ms", "120000");
        settings.put("receive.buffer.bytes", "32768");
        settings.put("send.buffer.bytes", "16384");
        settings.put("enable.metrics.push", "false");
        settings.put("metric.reporters", "");
        settings.put("auto.include.jmx.reporter", "false");
        return settings;
    }
}
