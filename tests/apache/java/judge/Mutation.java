package judge;

import java.util.Arrays;
import java.util.zip.CRC32C;

/** Ways to spoil good bytes: what a broken or hostile peer would send. */
final class Mutation {
    private static final byte[][] LIES = {
        {-1, -1, -1, -1}, {0x7f, -1, -1, -1}, {-128, 0, 0, 0}, {-1, -1, -1, -2}, {0, 0, 0, 0}, {0x7f, -1}, {-1, -2},
        {-1, -1, -1, -1, 0x0f}, {-1, -1, -1, -1, -1, 0x01}, {-128, -128, -128, -128, -128, 0x01},
        {-128, -128, -128, -128, 0x00}, {-1}, {0}, {2}, {-127, 0}, {-1, -1, 3},
    };
    private static final int CRC_AT = 17;
    private static final int ATTRIBUTES_AT = 21;
    private static final int MAGIC_AT = 16;

    private final Chance chance;

    Mutation(Chance chance) {
        this.chance = chance;
    }

    /** One of the ways, chosen by chance, that leaves the first {@code kept} bytes alone. */
    byte[] of(byte[] good, int kept) {
        if (good.length <= kept) {
            return append(good);
        }
        switch (chance.below(8)) {
            case 0:
                return Arrays.copyOf(good, kept + chance.below(good.length - kept));
            case 1:
                return Arrays.copyOf(good, good.length - 1);
            case 2:
                return tags(good);
            case 3:
                return append(good);
            case 4:
                return insert(good, kept + chance.below(good.length - kept), LIES[chance.below(LIES.length)]);
            default:
                return overwrite(good, kept + chance.below(good.length - kept), LIES[chance.below(LIES.length)]);
        }
    }

    private byte[] append(byte[] good) {
        return insert(good, good.length, LIES[chance.below(LIES.length)]);
    }

    /** Put something else where the last tag section of a flexible message usually is. */
    private byte[] tags(byte[] good) {
        byte[][] sections = {
            {1, 0, 1, 0}, {1, 0, 0}, {1, 1, 2, 0, 0}, {1, 0, 127}, {2, 99, 1, 7, 99, 1, 8}, {2, 99, 0, 98, 0},
            {1, -1, -1, -1, -1, 15, 1, 5}, {1, 0, -1, -1, -1, -1, 7}, {-1, -1, -1, -1, 15}, {1, 0, 1, 1}, {1, 1, 1, 1},
            {1, 2, 1, 1}, {1, 0, 3, 1, 1, 0}, {1, 0, -128, -128, -128, -128, 8}, {3, 0, 1, 0, 0, 1, 0, 99, 0},
        };
        return insert(Arrays.copyOf(good, good.length - 1), good.length - 1, sections[chance.below(sections.length)]);
    }

    private static byte[] insert(byte[] good, int at, byte[] lie) {
        byte[] bad = Arrays.copyOf(good, good.length + lie.length);
        System.arraycopy(lie, 0, bad, at, lie.length);
        System.arraycopy(good, at, bad, at + lie.length, good.length - at);
        return bad;
    }

    private static byte[] overwrite(byte[] good, int at, byte[] lie) {
        byte[] bad = good.clone();
        System.arraycopy(lie, 0, bad, at, Math.min(lie.length, bad.length - at));
        return bad;
    }

    /** Spoil a batch behind its checksum: the checksum of a format 2 batch is made right again. */
    byte[] ofRecords(byte[] good) {
        byte[] bad = chance.oneIn(5) ? of(good, 0) : of(good, good.length > ATTRIBUTES_AT ? ATTRIBUTES_AT : 0);
        boolean modern = bad.length > ATTRIBUTES_AT && bad[MAGIC_AT] == 2;
        if (!modern || chance.oneIn(4)) {
            return bad;
        }
        int length = (bad[8] & 255) << 24 | (bad[9] & 255) << 16 | (bad[10] & 255) << 8 | bad[11] & 255;
        long end = 12L + length;
        if (end <= ATTRIBUTES_AT || end > bad.length) {
            return bad;
        }
        CRC32C crc = new CRC32C();
        crc.update(bad, ATTRIBUTES_AT, (int) end - ATTRIBUTES_AT);
        for (int i = 0; i < 4; i++) {
            bad[CRC_AT + i] = (byte) (crc.getValue() >>> (24 - 8 * i));
        }
        return bad;
    }
}
