import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * Puts lines of fields, apart by tabs, to Apache's StandardAuthorizer.
 *
 * <p>"new SUPER_USERS ALLOW_EVERYONE": another authorizer. "acl ID ...": an entry; before "load" it
 * is of the snapshot, later it is added. "gone ID": an entry is removed. "ask ..." and "any ..." are
 * answered by A or D, "host ADDRESS" by Java's text of it, a refusal by E and the class of it.
 * "time ROUNDS" asks every "ask" since "new" again and prints the
 * processor's nanoseconds of one decision.
 */
public class AuthorizerJudge {
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    record Asker(KafkaPrincipal principal, InetAddress clientAddress) implements AuthorizableRequestContext {
        public String listenerName() { return "L"; }
        public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
        public int requestType() { return 3; }
        public int requestVersion() { return 0; }
        public String clientId() { return ""; }
        public int correlationId() { return 0; }
    }

    record Question(Asker asker, Action action) { }

    static Asker asker(String[] fields) throws Exception {
        return new Asker(new KafkaPrincipal(fields[1], fields[2]), InetAddress.getByName(fields[3]));
    }

    static Question question(String[] fields) throws Exception {
        ResourceType type = ResourceType.fromCode(Byte.parseByte(fields[5]));
        ResourcePattern pattern = new ResourcePattern(type, fields[6], PatternType.LITERAL);
        AclOperation operation = AclOperation.fromCode(Byte.parseByte(fields[4]));
        return new Question(asker(fields), new Action(operation, pattern, 1, false, false));
    }

    static StandardAcl acl(String[] fields) {
        return new StandardAcl(ResourceType.fromCode(Byte.parseByte(fields[2])), fields[3],
            PatternType.fromCode(Byte.parseByte(fields[4])), fields[5], fields[6],
            AclOperation.fromCode(Byte.parseByte(fields[7])),
            AclPermissionType.fromCode(Byte.parseByte(fields[8])));
    }

    static String answer(AuthorizationResult result) {
        return result == AuthorizationResult.ALLOWED ? "A" : "D";
    }

    static AuthorizationResult decide(StandardAuthorizer authorizer, Question question) {
        return authorizer.authorize(question.asker, List.of(question.action)).get(0);
    }

    static long nanosecondsEach(StandardAuthorizer authorizer, List<Question> questions, int rounds) {
        int allowed = 0;
        long best = Long.MAX_VALUE;
        for (int round = 0; round < rounds; round++) {
            long begin = THREADS.getCurrentThreadCpuTime();
            for (Question each : questions) {
                if (decide(authorizer, each) == AuthorizationResult.ALLOWED) allowed++;
            }
            best = Math.min(best, THREADS.getCurrentThreadCpuTime() - begin);
        }
        if (allowed < 0) throw new IllegalStateException();
        return best / questions.size();
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        StandardAuthorizer authorizer = null;
        Map<Uuid, StandardAcl> snapshot = null;
        List<Question> questions = null;
        for (String line; (line = in.readLine()) != null; ) {
            String[] fields = line.split("\t", -1);
            try {
                switch (fields[0]) {
                    case "new" -> {
                        authorizer = new StandardAuthorizer();
                        authorizer.configure(Map.of("node.id", "1", "super.users", fields[1],
                            "allow.everyone.if.no.acl.found", fields[2]));
                        authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
                        snapshot = new LinkedHashMap<>();
                        questions = new ArrayList<>();
                    }
                    case "acl" -> {
                        Uuid id = new Uuid(1, Long.parseLong(fields[1]));
                        if (snapshot == null) authorizer.addAcl(id, acl(fields));
                        else snapshot.put(id, acl(fields));
                    }
                    case "load" -> {
                        authorizer.loadSnapshot(snapshot);
                        authorizer.completeInitialLoad();
                        snapshot = null;
                    }
                    case "gone" -> authorizer.removeAcl(new Uuid(1, Long.parseLong(fields[1])));
                    case "ask" -> {
                        Question asked = question(fields);
                        questions.add(asked);
                        out.println(answer(decide(authorizer, asked)));
                    }
                    case "any" -> out.println(answer(authorizer.authorizeByResourceType(asker(fields),
                        AclOperation.fromCode(Byte.parseByte(fields[4])),
                        ResourceType.fromCode(Byte.parseByte(fields[5])))));
                    case "host" -> out.println(InetAddress.getByName(fields[1]).getHostAddress());
                    case "time" -> out.println(nanosecondsEach(authorizer, questions, Integer.parseInt(fields[1])));
                    default -> throw new IllegalStateException(line);
                }
            } catch (RuntimeException refused) {
                out.println("E " + refused.getClass().getSimpleName());
            }
        }
        out.flush();
    }
}
