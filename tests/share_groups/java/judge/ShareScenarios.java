package judge;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Share consumers of Apache's Java client: {@code ShareScenarios BOOTSTRAP SCENARIO...}.
 *
 * <p>One JSON line per scenario: {@code {"scenario", "seen" or "failure"}}. What is seen does not
 * depend on time, so that two brokers can be compared.
 */
public final class ShareScenarios {
    /** One scenario over a topic and a group of its own, of this name. */
    interface Scenario {
        Object run(ShareGroup group) throws Exception;
    }

    private ShareScenarios() {
    }

    private static Map<String, Scenario> scenarios() {
        Map<String, Scenario> all = new LinkedHashMap<>();
        all.put("implicit", Deliveries::implicit);
        all.put("explicit", Deliveries::explicit);
        all.put("limit", Deliveries::limit);
        all.put("closed", Deliveries::closed);
        all.put("lock-ends", Deliveries::lockEnds);
        all.put("renewed", Deliveries::renewed);
        all.put("record-limit", Deliveries::recordLimit);
        all.put("read-committed", Deliveries::readCommitted);
        all.put("latest", Deliveries::latest);
        all.put("described", Administration::described);
        all.put("reset", Administration::reset);
        all.put("deleted", Administration::deleted);
        return all;
    }

    /** Run the named scenarios in order. */
    public static void main(String[] arguments) throws Exception {
        Map<String, Scenario> all = scenarios();
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (int i = 1; i < arguments.length; i++) {
            Map<String, Object> line = new LinkedHashMap<>();
            line.put("scenario", arguments[i]);
            try (ShareGroup group = new ShareGroup(arguments[0], "share-" + arguments[i])) {
                line.put("seen", all.get(arguments[i]).run(group));
            } catch (Exception | AssertionError failure) {
                line.put("failure", failure + " at " + place(failure));
            }
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
