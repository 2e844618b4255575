import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.AppConfigurationEntry.LoginModuleControlFlag;
import org.apache.kafka.common.config.SaslConfigs;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerSaslServer;
import org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler;

/**
 * Puts initial responses of OAUTHBEARER to Apache's own server side.
 *
 * <p>"signed KEY=VALUE ..." is another listener with signed tokens, "unsecured OPTION=VALUE ..." one
 * with unsecured tokens; the fields are apart by tabs. "ask HEX" is a first message, answered by "ok
 * PRINCIPAL LIFETIME_MS", "challenge TEXT", "refused TEXT" or "failed CLASS"; texts are in hex.
 */
public class TokenJudge {
    static final String MECHANISM = "OAUTHBEARER";

    static AuthenticateCallbackHandler handler(String[] fields) {
        Map<String, String> given = new HashMap<>();
        for (int i = 1; i < fields.length; i++) {
            String[] pair = fields[i].split("=", 2);
            given.put(pair[0], pair[1]);
        }
        boolean signed = fields[0].equals("signed");
        String module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule";
        Map<String, String> options = signed ? Map.of() : given;
        AppConfigurationEntry entry = new AppConfigurationEntry(module, LoginModuleControlFlag.REQUIRED, options);
        AuthenticateCallbackHandler made = signed
            ? new OAuthBearerValidatorCallbackHandler() : new OAuthBearerUnsecuredValidatorCallbackHandler();
        made.configure(signed ? configs(given) : Map.of(), MECHANISM, List.of(entry));
        return made;
    }

    static Map<String, Object> configs(Map<String, String> given) {
        Map<String, Object> configs = new HashMap<>(given);
        String url = given.get(SaslConfigs.SASL_OAUTHBEARER_JWKS_ENDPOINT_URL);
        System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", url);
        String skew = given.getOrDefault(SaslConfigs.SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS, "30");
        configs.put(SaslConfigs.SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS, Integer.valueOf(skew));
        String audience = given.getOrDefault(SaslConfigs.SASL_OAUTHBEARER_EXPECTED_AUDIENCE, "");
        List<String> audiences = audience.isEmpty() ? List.of() : List.of(audience.split(","));
        configs.put(SaslConfigs.SASL_OAUTHBEARER_EXPECTED_AUDIENCE, audiences);
        configs.putIfAbsent(SaslConfigs.SASL_OAUTHBEARER_SCOPE_CLAIM_NAME, "scope");
        configs.putIfAbsent(SaslConfigs.SASL_OAUTHBEARER_SUB_CLAIM_NAME, "sub");
        String validator = "org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator";
        configs.put(SaslConfigs.SASL_OAUTHBEARER_JWT_VALIDATOR_CLASS, validator);
        return configs;
    }

    static String answer(AuthenticateCallbackHandler handler, byte[] message) {
        OAuthBearerSaslServer server = new OAuthBearerSaslServer(handler);
        try {
            byte[] challenge = server.evaluateResponse(message);
            if (!server.isComplete())
                return "challenge\t" + hex(new String(challenge, StandardCharsets.UTF_8));
            OAuthBearerToken token = (OAuthBearerToken) server.getNegotiatedProperty(MECHANISM + ".token");
            return "ok\t" + hex(token.principalName()) + "\t" + token.lifetimeMs();
        } catch (SaslAuthenticationException refused) {
            return "refused\t" + hex(refused.getMessage());
        } catch (javax.security.sasl.SaslException refused) {
            return "refused\t";
        } catch (Exception error) {
            return "failed\t" + error.getClass().getSimpleName();
        }
    }

    static String hex(String text) {
        return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        AuthenticateCallbackHandler handler = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split("\t");
            if (fields[0].equals("ask"))
                out.println(answer(handler, HexFormat.of().parseHex(fields.length > 1 ? fields[1] : "")));
            else
                handler = handler(fields);
        }
    }
}
