import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.AppConfigurationEntry.LoginModuleControlFlag;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever;

/**
 * Fetches tokens as a client of Apache's does.
 *
 * <p>A line is a client: the address of its provider, its keys as KEY=VALUE and its login entry's
 * options as :NAME=VALUE, apart by tabs. The answer is "token TEXT", or "failed".
 */
public class RetrieverJudge {
    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine())
            out.println(answer(line.split("\t")));
    }

    static String answer(String[] fields) {
        String url = fields[0];
        System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", url);
        Map<String, Object> keys = new HashMap<>();
        Map<String, String> options = new HashMap<>();
        for (int i = 1; i < fields.length; i++) {
            String[] pair = fields[i].split("=", 2);
            if (pair[0].startsWith(":"))
                options.put(pair[0].substring(1), pair[1]);
            else
                keys.put(pair[0], pair[1]);
        }
        keys.put("bootstrap.servers", "127.0.0.1:9092");
        keys.put("sasl.oauthbearer.token.endpoint.url", url);
        keys.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        keys.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        String module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule";
        AppConfigurationEntry entry = new AppConfigurationEntry(module, LoginModuleControlFlag.REQUIRED, options);
        try (DefaultJwtRetriever retriever = new DefaultJwtRetriever()) {
            retriever.configure(new ConsumerConfig(keys).values(), "OAUTHBEARER", List.of(entry));
            return "token " + retriever.retrieve();
        } catch (Exception error) {
            return "failed";
        }
    }
}
