package judge;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/**
 * Members of many groups that read one topic: {@code GroupMembers BOOTSTRAP TOPIC ASSIGNOR}.
 *
 * <p>A line {@code start KIND GROUP NAME} of standard input starts a member, where KIND is classic,
 * consumer or share; {@code stop NAME} lets it leave. At the end of the input all leave. What members
 * print is in their classes; {@code x NAME} is a member that has left, {@code e GROUP NAME PROBLEM}
 * one that has ended by itself.
 */
public final class GroupMembers {
    private static final long STACK_BYTES = 256 * 1024;

    private final String bootstrap;
    private final String topic;
    private final String assignor;
    private final Map<String, Member> members = new HashMap<>();
    private final Map<String, Thread> threads = new HashMap<>();

    private GroupMembers(String[] arguments) {
        this.bootstrap = arguments[0];
        this.topic = arguments[1];
        this.assignor = arguments[2];
    }

    /** Do what standard input says, until it ends. */
    public static void main(String[] arguments) throws IOException, InterruptedException {
        GroupMembers all = new GroupMembers(arguments);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("start")) {
                all.start(words[1], words[2], words[3]);
            } else {
                all.members.remove(words[1]).leave();
            }
        }
        all.members.values().forEach(Member::leave);
        for (Thread thread : all.threads.values()) {
            thread.join();
        }
    }

    private void start(String kind, String group, String name) {
        Member member = kind.equals("share")
            ? new ShareMember(bootstrap, topic, group, name)
            : new OffsetMember(bootstrap, topic, group, name, kind.equals("classic"), assignor);
        members.put(name, member);
        threads.put(name, new Thread(null, member, name, STACK_BYTES));
        threads.get(name).start();
    }
}
