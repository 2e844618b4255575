package example;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** A JUnit 5 extension: one Kafka for a class of tests. Needs kraft-wire on the PATH. */
public final class KraftWire implements BeforeAllCallback, AfterAllCallback {
    private Process process;
    private Path directory;
    private String facts;

    @Override
    public void beforeAll(ExtensionContext context) throws Exception {
        directory = Files.createTempDirectory("kraft-wire-");
        Path ready = directory.resolve("ready.json");
        process = new ProcessBuilder("kraft-wire", "server", "--ephemeral",
                "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--ready-file", ready.toString())
                .redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
        while (!Files.exists(ready)) {
            if (!process.isAlive()) {
                throw new IllegalStateException("kraft-wire has ended");
            }
            Thread.sleep(5);
        }
        facts = Files.readString(ready);
    }

    @Override
    public void afterAll(ExtensionContext context) throws Exception {
        process.destroy();
        process.waitFor();
        Files.delete(directory);
    }

    /** Where clients connect. */
    public String bootstrapServers() {
        return value("\"PLAINTEXT\": \"([^\"]+)\"", facts);
    }

    /** Add a fault rule as JSON, see docs/FAULTS.md; return its number. */
    public int inject(String rule) throws Exception {
        return Integer.parseInt(value("\"number\": (\\d+)", http("", HttpRequest.BodyPublishers.ofString(rule))));
    }

    /** Return how often a rule has fired, once it has. */
    public int fired(int number) throws Exception {
        return Integer.parseInt(value("\"fired\": (\\d+)", http("/" + number + "?wait=10", null)));
    }

    private String http(String path, HttpRequest.BodyPublisher body) throws Exception {
        URI uri = URI.create("http://" + value("\"control\": \"([^\"]+)\"", facts) + "/rules" + path);
        HttpRequest.Builder request = HttpRequest.newBuilder(uri);
        return HttpClient.newHttpClient()
                .send((body == null ? request.GET() : request.POST(body)).build(), BodyHandlers.ofString()).body();
    }

    private static String value(String pattern, String text) {
        Matcher found = Pattern.compile(pattern).matcher(text);
        if (!found.find()) {
            throw new IllegalStateException(text);
        }
        return found.group(1);
    }
}
