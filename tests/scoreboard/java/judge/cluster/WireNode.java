package judge.cluster;

import java.io.File;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import kafka.server.KafkaConfig;

/** One kraft-wire node as a process: formatted once, then started and stopped any number of times. */
final class WireNode {
    private static final String COMMAND = System.getProperty("judge.kraft.wire");
    private static final long START_SECONDS_MAX = 60;
    private static final long STOP_SECONDS_MAX = 60;

    final int id;
    private final Path home;
    private final Map<String, String> settings;
    private Process process;

    WireNode(int id, Path home, Map<String, String> settings) {
        this.id = id;
        this.home = home;
        this.settings = new TreeMap<>(settings);
    }

    /** The settings as Apache's own class reads them. */
    KafkaConfig config() {
        return new KafkaConfig(settings, false);
    }

    /** Write the file of settings and start `kraft-wire format`; `waitUntilFormatted` waits for it. */
    void format(List<String> options) throws IOException {
        Files.createDirectories(home);
        Properties file = new Properties();
        settings.forEach(file::setProperty);
        try (Writer writer = Files.newBufferedWriter(file())) {
            file.store(writer, null);
        }
        List<String> command = new ArrayList<>(List.of(COMMAND, "format", "-c", file().toString()));
        command.addAll(options);
        process = run(command, "format.log");
    }

    void waitUntilFormatted() throws IOException, InterruptedException {
        if (process.waitFor() != 0) {
            String refusal = Files.readString(home.resolve("format.log"));
            if (refusal.contains("cannot be found")) {
                throw Insides.aborted("a class that a setting names: " + refusal);
            }
            throw new IllegalArgumentException("format: " + refusal);
        }
    }

    /** Start the process; `waitUntilReady` waits for it. */
    void start() throws IOException {
        Files.deleteIfExists(ready());
        process = run(List.of(COMMAND, "server", file().toString(), "--ready-file", ready().toString()), "server.log");
    }

    void waitUntilReady() throws IOException, InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(START_SECONDS_MAX);
        while (!Files.exists(ready())) {
            if (!process.isAlive() || System.nanoTime() > end) {
                throw new IllegalStateException("node " + id + ": " + lastLines());
            }
            TimeUnit.MILLISECONDS.sleep(10);
        }
    }

    boolean isRunning() {
        return process != null && process.isAlive();
    }

    /** Ask the node to stop, as a controlled shutdown does; `waitUntilStopped` waits for it. */
    void stop() {
        if (process != null) {
            process.destroy();
        }
    }

    void waitUntilStopped() throws InterruptedException {
        if (process != null && !process.waitFor(STOP_SECONDS_MAX, TimeUnit.SECONDS)) {
            process.destroyForcibly().waitFor();
        }
    }

    /** End the process, whatever it does. */
    void kill() throws InterruptedException {
        if (process != null) {
            process.destroyForcibly().waitFor();
        }
    }

    private Process run(List<String> command, String log) throws IOException {
        ProcessBuilder builder = new ProcessBuilder(command).directory(home.toFile());
        File output = home.resolve(log).toFile();
        return builder.redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.appendTo(output)).start();
    }

    private String lastLines() throws IOException {
        List<String> lines = Files.readAllLines(home.resolve("server.log"));
        return String.join("\n", lines.subList(Math.max(0, lines.size() - 5), lines.size()));
    }

    private Path file() {
        return home.resolve("server.properties");
    }

    private Path ready() {
        return home.resolve("ready.json");
    }
}
