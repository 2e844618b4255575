import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

/**
 * Walks Java's HashMap and Kafka's TimelineHashMap after each step of a story.
 *
 * <p>"hash CAPACITY" and "timeline" begin a map, "put KEY", "absent KEY" (computeIfAbsent), "pop KEY"
 * and "copy" (a HashMap of the map) are steps. KEY is "i" and a number, or "s" and a text. After each
 * line the keys are printed in the order of the map, apart by blanks.
 */
public class MapJudge {
    static Object key(String text) {
        String rest = text.substring(1);
        return text.startsWith("i") ? (Object) Integer.valueOf(rest) : rest;
    }

    static Map<Object, Integer> after(Map<Object, Integer> map, String[] line) {
        switch (line[0]) {
            case "hash": return new HashMap<>(Integer.parseInt(line[1]));
            case "timeline": return new TimelineHashMap<>(new SnapshotRegistry(new LogContext()), 0);
            case "put": map.put(key(line[1]), 1); return map;
            case "absent": map.computeIfAbsent(key(line[1]), key -> 1); return map;
            case "pop": map.remove(key(line[1])); return map;
            case "copy": return new HashMap<>(map);
            default: throw new IllegalArgumentException(line[0]);
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Map<Object, Integer> map = Map.of();
        StringBuilder printed = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            map = after(map, line.split(" "));
            List<String> keys = new ArrayList<>();
            for (Object key : map.keySet()) keys.add((key instanceof Integer ? "i" : "s") + key);
            printed.append(String.join(" ", keys)).append('\n');
        }
        System.out.print(printed);
    }
}
