package judge;

import java.util.Random;

/** Random values that like the edges of their range. */
final class Chance {
    private static final String[] TEXTS = {
        "", "a", "foo", "kafka-topic_1.x", "Grüße", "日本語", "\uD83D\uDE00 smile", "\u0000", "with \"quotes\" \\",
        "line\nbreak", "\u007f\u0080\u07ff\u0800\uffff", "é\u0301",
    };

    final Random random;
    private final boolean large;

    /** With {@code large}, a value is now and then as long as its type allows. */
    Chance(long seed, boolean large) {
        this.random = new Random(seed);
        this.large = large;
    }

    boolean large() {
        return large;
    }

    boolean oneIn(int n) {
        return random.nextInt(n) == 0;
    }

    int below(int n) {
        return random.nextInt(n);
    }

    /** A signed integer of the given width in bits: an edge, a small one or any. */
    long integer(int bits) {
        long highest = bits == 64 ? Long.MAX_VALUE : (1L << (bits - 1)) - 1;
        long lowest = -highest - 1;
        switch (random.nextInt(6)) {
            case 0:
                return highest;
            case 1:
                return lowest;
            case 2:
                return -1;
            case 3:
                return random.nextInt(100);
            default:
                return bits == 64 ? random.nextLong() : lowest + (random.nextLong() >>> (64 - bits));
        }
    }

    long unsigned(int bits) {
        return oneIn(4) ? (1L << bits) - 1 : random.nextLong() >>> (64 - bits);
    }

    double real() {
        double[] edges = {0.0, -0.0, 1.0, -1.5, 1e10, 1e-7, 123456789.125, Double.MAX_VALUE, Double.MIN_VALUE, 1e21};
        return oneIn(2) ? edges[below(edges.length)] : random.nextGaussian() * Math.pow(10, below(40) - 20);
    }

    String text() {
        if (oneIn(60)) {
            return "x".repeat(large && oneIn(3) ? Short.MAX_VALUE : 120 + below(20));
        }
        return oneIn(3) ? Long.toString(random.nextLong(), 36) : TEXTS[below(TEXTS.length)];
    }

    byte[] bytes() {
        byte[] bytes = new byte[oneIn(4) ? 0 : oneIn(30) ? 300 : below(12)];
        random.nextBytes(bytes);
        return bytes;
    }

    /** How many elements an array gets: often none, few, rarely many. */
    int count(int depth, boolean plain) {
        if (oneIn(5)) {
            return 0;
        }
        if (plain && oneIn(25)) {
            return 126 + below(6);
        }
        return 1 + below(depth > 2 ? 2 : 3);
    }
}
