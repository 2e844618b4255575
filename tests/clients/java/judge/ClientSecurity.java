package judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.Map;

/** Protocol, login and certificates, as the file that SECURITY names says; settings of Apache's client. */
final class ClientSecurity {
    private static final String MODULES = "org.apache.kafka.common.security.";
    private static final String OAUTH = MODULES + "oauthbearer.OAuthBearerLogin";

    private ClientSecurity() {
    }

    /** The settings, none without the file. */
    static Map<String, Object> settings() {
        String path = System.getenv("SECURITY");
        if (path == null) {
            return Map.of();
        }
        try {
            return settings(new ObjectMapper().readTree(new File(path)));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static Map<String, Object> settings(JsonNode wanted) {
        Map<String, Object> all = new HashMap<>();
        String protocol = wanted.get("protocol").asText();
        all.put("security.protocol", protocol);
        if (protocol.endsWith("SSL")) {
            all.put("ssl.truststore.type", "PEM");
            all.put("ssl.truststore.location", wanted.get("authority").asText());
        }
        if (!wanted.get("store").asText().isEmpty()) {
            all.put("ssl.keystore.type", "PEM");
            all.put("ssl.keystore.location", wanted.get("store").asText());
        }
        String mechanism = wanted.get("mechanism").asText();
        if (!mechanism.isEmpty()) {
            all.put("sasl.mechanism", mechanism);
            all.put("sasl.jaas.config", entry(mechanism, wanted));
        }
        if (mechanism.equals("OAUTHBEARER")) {
            String url = "file://" + wanted.get("token_file").asText();
            System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", url);
            all.put("sasl.oauthbearer.token.endpoint.url", url);
            all.put("sasl.login.callback.handler.class", OAUTH + "CallbackHandler");
        }
        return all;
    }

    private static String entry(String mechanism, JsonNode wanted) {
        if (mechanism.equals("OAUTHBEARER")) {
            return OAUTH + "Module required;";
        }
        String module = mechanism.equals("PLAIN") ? "plain.Plain" : "scram.Scram";
        String mark = wanted.get("by_delegation_token").asBoolean() ? " tokenauth=true" : "";
        return MODULES + module + "LoginModule required username=\"" + wanted.get("username").asText()
            + "\" password=\"" + wanted.get("password").asText() + "\"" + mark + ";";
    }
}
