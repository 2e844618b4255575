package judge;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import com.yammer.metrics.core.Meter;
import com.yammer.metrics.core.MetricsRegistry;
import kafka.network.ConnectionQuotas;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.ConnectionThrottledException;
import org.apache.kafka.network.TooManyConnectionsException;
import scala.Option;

/**
 * Apache's own ConnectionQuotas under a story told line by line, at a time that each line gives.
 * Listeners are EXTERNAL, OTHER and INTERNAL, which is that between brokers. "begin NUM SECONDS RATE
 * MAX PER_IP OVERRIDES" ("-" none), "all MS RATE MAX", "listener MS NAME RATE MAX", "ip MS HOST RATE"
 * ("*" the default, rate "-" removes), "arrive MS NAME HOST", "leave MS NAME HOST". "arrive" answers
 * the delay, then "full", or the verdict and whether each listener must lose a connection.
 */
public final class Connections {
    private static final String[] LISTENERS = {"EXTERNAL", "OTHER", "INTERNAL"};
    private static final Meter BLOCKED =
        new MetricsRegistry().newMeter(Connections.class, "blocked", "time", TimeUnit.NANOSECONDS);
    private static volatile ConnectionQuotas quotas;
    private static long nowMs;
    private static long delayMs;
    private static int readings;

    private static final Time TIME = new Time() {
        @Override
        public long milliseconds() {
            return readings++ == 0 ? nowMs : nowMs + delayMs;
        }

        @Override
        public long nanoseconds() {
            return TimeUnit.MILLISECONDS.toNanos(nowMs);
        }

        @Override
        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object it, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    };

    private Connections() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Thread waker = new Thread(() -> {
            try {
                wakeUp();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
        waker.setDaemon(true);
        waker.start();
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("begin")) {
                begin(words);
                continue;
            }
            nowMs = Long.parseLong(words[1]);
            switch (words[0]) {
                case "all":
                    quotas.updateBrokerMaxConnectionRate(Integer.parseInt(words[2]));
                    quotas.updateBrokerMaxConnections(Integer.parseInt(words[3]));
                    break;
                case "listener":
                    limit(words[2], words[3], words[4]);
                    break;
                case "ip":
                    quotas.updateIpConnectionRateQuota(
                        words[2].equals("*")
                            ? Option.empty() : Option.apply(InetAddress.getByName(words[2])),
                        words[3].equals("-")
                            ? Option.empty() : Option.apply((Object) Integer.valueOf(words[3])));
                    break;
                case "leave":
                    quotas.dec(new ListenerName(words[2]), InetAddress.getByName(words[3]));
                    break;
                default:
                    answers.append(arrive(words[2], words[3])).append('\n');
            }
        }
        System.out.print(answers);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void begin(String[] words) {
        nowMs = 0;
        Properties given = new Properties();
        given.put("process.roles", "broker");
        given.put("node.id", "1");
        given.put("controller.quorum.voters", "2@127.0.0.1:9");
        given.put("controller.listener.names", "CONTROLLER");
        given.put("listeners", "EXTERNAL://127.0.0.1:1,OTHER://127.0.0.1:2,INTERNAL://127.0.0.1:3");
        given.put("listener.security.protocol.map",
            "EXTERNAL:PLAINTEXT,OTHER:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT");
        given.put("inter.broker.listener.name", "INTERNAL");
        given.put("quota.window.num", words[1]);
        given.put("quota.window.size.seconds", words[2]);
        given.put("max.connection.creation.rate", words[3]);
        given.put("max.connections", words[4]);
        given.put("max.connections.per.ip", words[5]);
        given.put("max.connections.per.ip.overrides", words[6].equals("-") ? "" : words[6]);
        KafkaConfig config = new KafkaConfig(given, false);
        quotas = new ConnectionQuotas(config, TIME, new Metrics(TIME));
        for (String each : LISTENERS) {
            quotas.addListener(config, new ListenerName(each));
        }
    }

    private static void limit(String listener, String rate, String connections) {
        quotas.maxConnectionsPerListener().apply(new ListenerName(listener)).reconfigure(Map.of(
            "max.connection.creation.rate", Integer.valueOf(rate),
            "max.connections", Integer.valueOf(connections)));
    }

    private static String arrive(String name, String host) throws Exception {
        ListenerName listener = new ListenerName(name);
        InetAddress address = InetAddress.getByName(host);
        long delay = (long) call("recordConnectionAndGetThrottleTimeMs",
            new Class<?>[] {ListenerName.class, long.class}, listener, nowMs);
        if (!(boolean) call("connectionSlotAvailable", new Class<?>[] {ListenerName.class}, listener)) {
            return delay + " full";
        }
        // Taken back, because `inc` counts it again.
        call("updateListenerMetrics",
            new Class<?>[] {ListenerName.class, long.class, long.class}, listener, 0L, nowMs);
        String verdict = "in";
        readings = 0;
        delayMs = delay;
        try {
            quotas.inc(listener, address, BLOCKED);
        } catch (ConnectionThrottledException e) {
            verdict = "held " + e.throttleTimeMs;
        } catch (TooManyConnectionsException e) {
            verdict = "many";
            quotas.dec(listener, address);
        }
        delayMs = 0;
        StringBuilder exceeded = new StringBuilder();
        for (String each : LISTENERS) {
            exceeded.append(quotas.maxConnectionsExceeded(new ListenerName(each)) ? 'x' : '.');
        }
        return delay + " " + verdict + " " + exceeded;
    }

    /** Ends the waits of `inc` at once: its clock stands at the end of the delay by then. */
    private static void wakeUp() throws Exception {
        Method counts = ConnectionQuotas.class.getDeclaredMethod("counts");
        counts.setAccessible(true);
        while (true) {
            if (quotas != null) {
                Object monitor = counts.invoke(quotas);
                synchronized (monitor) {
                    monitor.notifyAll();
                }
            }
            Thread.sleep(1);
        }
    }

    private static Object call(String name, Class<?>[] kinds, Object... values) throws Exception {
        Method method = ConnectionQuotas.class.getDeclaredMethod(name, kinds);
        method.setAccessible(true);
        return method.invoke(quotas, values);
    }
}
