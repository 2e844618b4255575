package judge;

/** A closed range of versions as the schemas write it: "3", "3-7", "3+", "none". */
final class Versions {
    static final Versions NONE = new Versions(0, -1);

    final int lowest;
    final int highest;

    private Versions(int lowest, int highest) {
        this.lowest = lowest;
        this.highest = highest;
    }

    static Versions parse(String text, Versions otherwise) {
        if (text == null || text.isEmpty()) {
            return otherwise;
        }
        if (text.equals("none")) {
            return NONE;
        }
        if (text.endsWith("+")) {
            return new Versions(Integer.parseInt(text.substring(0, text.length() - 1)), Short.MAX_VALUE);
        }
        int dash = text.indexOf('-');
        return dash < 0
            ? new Versions(Integer.parseInt(text), Integer.parseInt(text))
            : new Versions(Integer.parseInt(text.substring(0, dash)), Integer.parseInt(text.substring(dash + 1)));
    }

    boolean contains(int version) {
        return lowest <= version && version <= highest;
    }
}
