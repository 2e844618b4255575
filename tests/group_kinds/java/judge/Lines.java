package judge;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** What all members print; the lines of one call stay together. */
final class Lines {
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.US_ASCII);

    private Lines() {
    }

    static void print(CharSequence lines) {
        synchronized (OUT) {
            OUT.append(lines);
            OUT.flush();
        }
    }
}
