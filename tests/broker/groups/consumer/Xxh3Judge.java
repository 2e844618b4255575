import com.dynatrace.hash4j.hashing.Hashing;

/** Prints the XXH3 of bytes of many lengths, as the library of Kafka's coordinator computes it. */
public final class Xxh3Judge {
    public static void main(String[] arguments) {
        for (int length = 0; length <= 2200; length++) {
            boolean isNearStripe = (length + 1) % 64 < 3;
            if (length > 260 && !isNearStripe) {
                continue;
            }
            byte[] data = new byte[length];
            for (int at = 0; at < length; at++) {
                data[at] = (byte) (at * at * 31 + at * 7 + length);
            }
            long hash = Hashing.xxh3_64().hashBytesToLong(data);
            System.out.println(length + " " + Long.toUnsignedString(hash, 16));
        }
    }
}
