package judge;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import kafka.server.share.ToldSharePartition;

/**
 * Apache's own SharePartition under a story told line by line; each line has one answer. "begin LOCKS
 * DELIVERIES LOCK_MS START STORED", "limit DELIVERIES LOCK_MS LOCKS RENEWS", "acquire MEMBER MODE SIZE
 * MAX OFFSET BATCHES ABORTED", "acknowledge NAME MEMBER BATCHES", "release NAME MEMBER", "start OFFSET"
 * (the log's), "written CODE" (the oldest write), "time MS".
 */
public final class SharePartitions {
    private SharePartitions() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StoryClock clock = new StoryClock();
        ToldSharePartition told = null;
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            String error = "";
            try {
                if (words[0].equals("begin")) {
                    clock.set(1_000);
                    told = new ToldSharePartition(clock, Integer.parseInt(words[1]),
                        Integer.parseInt(words[2]), Integer.parseInt(words[3]), Long.parseLong(words[4]),
                        words[5]);
                } else {
                    tell(told, clock, words);
                }
            } catch (RuntimeException e) {
                error = "threw " + e + " ";
            }
            answers.append(error).append(told.told()).append('\n');
        }
        System.out.print(answers);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void tell(ToldSharePartition told, StoryClock clock, String[] words) {
        switch (words[0]) {
            case "limit":
                told.limit(Integer.parseInt(words[1]), Integer.parseInt(words[2]),
                    Integer.parseInt(words[3]), words[4].equals("1"));
                break;
            case "acquire":
                told.acquire(words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3]),
                    Integer.parseInt(words[4]), Long.parseLong(words[5]), words[6], words[7]);
                break;
            case "acknowledge":
                told.acknowledge(words[1], words[2], words[3]);
                break;
            case "release":
                told.release(words[1], words[2]);
                break;
            case "start":
                told.moveLogStart(Long.parseLong(words[1]));
                break;
            case "written":
                told.written(Integer.parseInt(words[1]));
                break;
            default:
                clock.set(Long.parseLong(words[1]));
                told.passTime();
        }
    }
}
