import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import javax.security.auth.login.Configuration;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerSaslClientCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.internals.expiring.ExpiringCredential;
import org.apache.kafka.common.security.oauthbearer.internals.expiring.ExpiringCredentialRefreshConfig;
import org.apache.kafka.common.security.oauthbearer.internals.expiring.ExpiringCredentialRefreshingLogin;

/**
 * Says when Apache's refresher replaces a credential.
 *
 * <p>A line has the factor, the period and the buffer in seconds, now, the begin of the credential
 * or a minus, and its end in ms, apart by spaces; the jitter is 0. The answer is a time in ms.
 */
public class RefreshJudge {
    record Credential(Long startTimeMs, long expireTimeMs) implements ExpiringCredential {
        public String principalName() {
            return "ann";
        }

        public Long absoluteLastRefreshTimeMs() {
            return null;
        }
    }

    static class Login extends ExpiringCredentialRefreshingLogin {
        Login(ExpiringCredentialRefreshConfig config) {
            super("c", new NoConfiguration(), config, new OAuthBearerSaslClientCallbackHandler(), Login.class);
        }

        public ExpiringCredential expiringCredential() {
            return null;
        }
    }

    static class NoConfiguration extends Configuration {
        public AppConfigurationEntry[] getAppConfigurationEntry(String name) {
            return new AppConfigurationEntry[0];
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        Method refresh = ExpiringCredentialRefreshingLogin.class.getDeclaredMethod("refreshMs", long.class);
        Field held = ExpiringCredentialRefreshingLogin.class.getDeclaredField("expiringCredential");
        refresh.setAccessible(true);
        held.setAccessible(true);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split(" ");
            Map<String, Object> configs = new HashMap<>();
            configs.put("sasl.login.refresh.window.factor", Double.valueOf(fields[0]));
            configs.put("sasl.login.refresh.window.jitter", 0.0);
            configs.put("sasl.login.refresh.min.period.seconds", Short.valueOf(fields[1]));
            configs.put("sasl.login.refresh.buffer.seconds", Short.valueOf(fields[2]));
            Login login = new Login(new ExpiringCredentialRefreshConfig(configs, true));
            Long begins = fields[4].equals("-") ? null : Long.valueOf(fields[4]);
            held.set(login, new Credential(begins, Long.parseLong(fields[5])));
            out.println(refresh.invoke(login, Long.parseLong(fields[3])));
        }
    }
}
