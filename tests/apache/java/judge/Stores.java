package judge;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.Certificate;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509TrustManager;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;

/**
 * Whether Kafka takes a store. A line is key=value pairs between tabs; the answer is "refused", or
 * the digests of a key's chain and of the trusted certificates.
 */
public final class Stores {
    private Stores() {
    }

    public static void main(String[] args) throws Exception {
        var reader = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = reader.readLine(); line != null; line = reader.readLine()) {
            System.out.println(answer(line));
        }
    }

    private static String answer(String line) throws Exception {
        Map<String, Object> configs = new HashMap<>();
        configs.put("ssl.protocol", "TLSv1.3");
        configs.put("ssl.cipher.suites", List.of());
        configs.put("ssl.enabled.protocols", List.of("TLSv1.3"));
        for (String pair : line.split("\t")) {
            int at = pair.indexOf('=');
            String key = pair.substring(0, at);
            String value = pair.substring(at + 1);
            configs.put(key, key.endsWith("password") ? new Password(value) : value);
        }
        try (var factory = new DefaultSslEngineFactory()) {
            factory.configure(configs);
            return "chain=" + chain(factory.keystore()) + " trusted=" + trusted(factory.truststore());
        } catch (KafkaException refusal) {
            return "refused";
        }
    }

    private static String chain(KeyStore store) throws Exception {
        if (store == null) {
            return "";
        }
        for (String alias : Collections.list(store.aliases())) {
            if (store.isKeyEntry(alias)) {
                return digests(List.of(store.getCertificateChain(alias)));
            }
        }
        return "";
    }

    private static String trusted(KeyStore store) throws Exception {
        if (store == null) {
            return "";
        }
        var managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(store);
        List<Certificate> found = new ArrayList<>();
        for (TrustManager each : managers.getTrustManagers()) {
            Collections.addAll(found, ((X509TrustManager) each).getAcceptedIssuers());
        }
        return digests(found);
    }

    private static String digests(List<Certificate> certificates) throws Exception {
        List<String> found = new ArrayList<>();
        for (Certificate each : certificates) {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(each.getEncoded());
            found.add(HexFormat.of().formatHex(digest));
        }
        Collections.sort(found);
        return String.join(",", found);
    }
}
