import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** Prints the nanoseconds of each line's duration, "none" for a text that Java refuses. */
public class Durations {
    static String nanoseconds(String text) {
        try {
            Duration duration = Duration.parse(text);
            return BigInteger.valueOf(duration.getSeconds()).multiply(BigInteger.valueOf(1_000_000_000))
                .add(BigInteger.valueOf(duration.getNano())).toString();
        } catch (RuntimeException refused) {
            return "none";
        }
    }

    public static void main(String[] arguments) throws IOException {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(nanoseconds(line));
        }
    }
}
