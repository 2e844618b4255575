package judge;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Scenarios with Apache's own Java client: {@code ClientHarness BOOTSTRAP PREFIX SCENARIO...}.
 *
 * <p>One JSON line per scenario: {@code {"scenario", "status", "detail", "seconds"}}.
 */
public final class ClientHarness {
    /** One scenario over a topic of its own. */
    interface Scenario {
        void run(String topic) throws Exception;
    }

    private ClientHarness() {
    }

    private static Map<String, Scenario> scenarios(ClientScenarios client) {
        Map<String, Scenario> all = new LinkedHashMap<>();
        all.put("connect", client::connect);
        all.put("metadata", client::metadata);
        for (String codec : new String[] {"none", "gzip", "snappy", "lz4", "zstd"}) {
            all.put("codec-" + codec, topic -> client.codec(topic, codec));
        }
        all.put("keys", client::keys);
        all.put("headers", client::headers);
        all.put("nulls", client::nulls);
        all.put("large", client::large);
        all.put("idempotent", client::idempotent);
        all.put("group", client::group);
        all.put("timestamps", client::timestamps);
        all.put("seek", client::seek);
        all.put("topics", client::topics);
        all.put("auto-create", client::autoCreate);
        all.put("partitions-200", client::partitions200);
        all.put("restart-before", client::restartBefore);
        all.put("restart-after", client::restartAfter);
        return all;
    }

    /** Run the named scenarios in order. */
    public static void main(String[] arguments) throws Exception {
        ClientScenarios client = new ClientScenarios(arguments[0]);
        Map<String, Scenario> all = scenarios(client);
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (int i = 2; i < arguments.length; i++) {
            String name = arguments[i];
            String topic = arguments[1] + "-" + name.replaceAll("-(before|after)$", "");
            Map<String, Object> line = new LinkedHashMap<>();
            long started = System.nanoTime();
            line.put("scenario", name);
            try {
                all.get(name).run(topic);
                line.put("status", "ok");
                line.put("detail", "");
            } catch (Exception | AssertionError failure) {
                line.put("status", "fail");
                line.put("detail", failure + " at " + place(failure));
            }
            line.put("seconds", Math.round((System.nanoTime() - started) / 1e7) / 100.0);
            out.println(new ObjectMapper().writeValueAsString(line));
        }
        System.exit(0);
    }

    private static String place(Throwable failure) {
        for (StackTraceElement element : failure.getStackTrace()) {
            if (element.getClassName().startsWith("judge.")) {
                return element.toString();
            }
        }
        return "?";
    }
}
