package judge;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import kafka.server.ClientRequestQuotaManager;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuota;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/**
 * Apache's own quota managers under a story told line by line, at a time that each line gives:
 * "begin KIND NUM SECONDS", "set MS USER CLIENT BOUND" ("-" is no such part, "*" the default, bound
 * "-" removes), "record MS USER CLIENT VALUE", "unrecord ..." and "most MS USER CLIENT" of rates,
 * "strict" and "permissive MS USER CLIENT PERMITS..." of changes of topics. The last five answer.
 * Nothing is taken back while no quota is set: Apache's would count it, although it was not recorded.
 */
public final class ClientQuotas {
    private static final StoryClock TIME = new StoryClock();
    private static ClientQuotaManager manager;

    private ClientQuotas() {
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("begin")) {
                begin(words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3]));
                continue;
            }
            TIME.set(Long.parseLong(words[1]));
            if (words[0].equals("set")) {
                set(words);
                continue;
            }
            answers.append(answer(words)).append('\n');
        }
        System.out.print(answers);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void begin(String kind, int number, int seconds) {
        TIME.set(0);
        ClientQuotaManagerConfig config = new ClientQuotaManagerConfig(number, seconds);
        Metrics metrics = new Metrics(TIME);
        manager = switch (kind) {
            case "request" ->
                new ClientRequestQuotaManager(config, metrics, TIME, "", Optional.empty());
            case "mutation" ->
                new ControllerMutationQuotaManager(config, metrics, TIME, "", Optional.empty());
            default -> new ClientQuotaManager(config, metrics, QuotaType.PRODUCE, TIME, "");
        };
    }

    private static void set(String[] words) {
        Optional<ClientQuotaEntity.ConfigEntity> user = switch (words[2]) {
            case "-" -> Optional.empty();
            case "*" -> Optional.of(ClientQuotaManager.DEFAULT_USER_ENTITY);
            default -> Optional.of(new ClientQuotaManager.UserEntity(words[2]));
        };
        Optional<ClientQuotaEntity.ConfigEntity> client = switch (words[3]) {
            case "-" -> Optional.empty();
            case "*" -> Optional.of(ClientQuotaManager.DEFAULT_USER_CLIENT_ID);
            default -> Optional.of(new ClientQuotaManager.ClientIdEntity(words[3]));
        };
        Optional<Quota> bound = words[4].equals("-")
            ? Optional.empty() : Optional.of(Quota.upperBound(Double.parseDouble(words[4])));
        manager.updateQuota(user, client, bound);
    }

    private static String answer(String[] words) throws IOException {
        Session session = new Session(
            new KafkaPrincipal(KafkaPrincipal.USER_TYPE, words[2]), InetAddress.getLoopbackAddress());
        String client = words[3].equals("-") ? "" : words[3];
        switch (words[0]) {
            case "most":
                return Double.toString(manager.maxValueInQuotaWindow(session, client));
            case "record":
                return Integer.toString(manager.maybeRecordAndGetThrottleTimeMs(
                    session, client, Double.parseDouble(words[4]), TIME.milliseconds()));
            case "unrecord":
                if (manager.quotasEnabled()) {
                    double value = Double.parseDouble(words[4]);
                    manager.unrecordQuotaSensor(session, client, value, TIME.milliseconds());
                }
                return "done";
            default:
                return mutations(words, session, client);
        }
    }

    private static String mutations(String[] words, Session session, String client) {
        ControllerMutationQuotaManager changes = (ControllerMutationQuotaManager) manager;
        ControllerMutationQuota quota = words[0].equals("strict")
            ? changes.newStrictQuotaFor(session, client)
            : changes.newPermissiveQuotaFor(session, client);
        StringBuilder refused = new StringBuilder();
        for (int each = 4; each < words.length; each++) {
            try {
                quota.record(Double.parseDouble(words[each]));
                refused.append('.');
            } catch (ThrottlingQuotaExceededException e) {
                refused.append('x');
            }
        }
        return refused + " " + quota.throttleTime();
    }
}
