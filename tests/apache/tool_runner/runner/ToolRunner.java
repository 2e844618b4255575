package runner;

import java.io.BufferedOutputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.File;
import java.io.FileOutputStream;
import java.io.FileDescriptor;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs main classes of Apache's tools one after the other, each as if it had a process of its own.
 *
 * <p>A request on standard input is a number of words (the class, its arguments), each with its
 * length, and the bytes of the tool's standard input. The answer is the exit code, the bytes of both
 * outputs, and the number of clients that the tool has left open: they look for their brokers until
 * this process ends, so that it should end then. Classes of the tools are loaded anew for each run, because their static fields
 * count messages and close latches; those of the clients stay. Hooks for the end of the process run
 * at the end of the tool. Ends with its standard input.
 */
public final class ToolRunner {
    private static final List<String> LOADED_ANEW =
            List.of("org.apache.kafka.tools.", "kafka.tools.", "kafka.admin.");
    private static final int UNCAUGHT = 1;
    private static final long HOOK_MILLIS_MAX = 60_000;
    /** For the main thread of a tool that another thread has ended. */
    private static final long UNWIND_MILLIS_MAX = 10_000;
    /** How the threads of Apache's clients are named. */
    private static final String CLIENT_THREAD = "kafka-";
    /** For clients that are being closed in the background. */
    private static final long CLOSE_MILLIS_MAX = 200;

    private static final Captured OUT = new Captured();
    private static final Captured ERR = new Captured();

    private ToolRunner() {}

    /** Thrown where a process would have ended. */
    private static final class Ended extends Error {
        private static final long serialVersionUID = 1L;

        Ended() {
            super("the tool has ended", null, false, false);
        }
    }

    /** What the running tool has written, up to its end. */
    private static final class Captured extends OutputStream {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        private boolean isOpen;

        @Override
        public synchronized void write(int one) {
            if (isOpen) bytes.write(one);
        }

        @Override
        public synchronized void write(byte[] many, int from, int count) {
            if (isOpen) bytes.write(many, from, count);
        }

        synchronized void open() {
            bytes.reset();
            isOpen = true;
        }

        synchronized byte[] seal() {
            isOpen = false;
            return bytes.toByteArray();
        }
    }

    /** One run of one tool. */
    private static final class Run {
        private final List<Thread> hooks = Collections.synchronizedList(new ArrayList<>());
        private final AtomicBoolean hasEnded = new AtomicBoolean();
        private final CompletableFuture<byte[][]> outputs = new CompletableFuture<>();
        private volatile int code;

        /** End as a process does: the first exit counts, its hooks run, and then nothing is written. */
        void end(int with) {
            if (!hasEnded.compareAndSet(false, true)) return;
            code = with;
            List<Thread> ending = List.copyOf(hooks);
            for (Thread each : ending) each.start();
            for (Thread each : ending) join(each, HOOK_MILLIS_MAX);
            System.out.flush();
            System.err.flush();
            outputs.complete(new byte[][] {OUT.seal(), ERR.seal()});
        }

        void hook(Runnable action) {
            hooks.add(new Thread(action));
        }
    }

    private static void join(Thread thread, long millisMax) {
        try {
            thread.join(millisMax);
        } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
        }
    }

    /** Loads classes of the tools itself, and takes all others from the virtual machine's path. */
    private static final class Tools extends URLClassLoader {
        Tools(URL[] path) {
            super(path, ToolRunner.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                if (LOADED_ANEW.stream().noneMatch(name::startsWith)) return super.loadClass(name, resolve);
                Class<?> found = findLoadedClass(name);
                return found == null ? findClass(name) : found;
            }
        }
    }

    /** Serve until standard input ends. */
    public static void main(String[] arguments) throws Exception {
        DataInputStream requests = new DataInputStream(System.in);
        DataOutputStream answers = new DataOutputStream(
                new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)));
        System.setOut(new PrintStream(OUT, true));
        System.setErr(new PrintStream(ERR, true));
        URL[] path = path();
        while (true) {
            String[] words;
            try {
                words = words(requests);
            } catch (EOFException over) {
                Runtime.getRuntime().halt(0);
                return;
            }
            Run run = run(words, bytes(requests), path);
            answers.writeInt(run.code);
            for (byte[] each : run.outputs.join()) {
                answers.writeInt(each.length);
                answers.write(each);
            }
            answers.writeInt(clientsLeft());
            answers.flush();
        }
    }

    private static Run run(String[] words, byte[] input, URL[] path) throws Exception {
        Run run = new Run();
        Exit.Procedure ends = (code, message) -> {
            run.end(code);
            throw new Ended();
        };
        Exit.setExitProcedure(ends);
        Exit.setHaltProcedure(ends);
        Exit.setShutdownHookAdder((name, action) -> run.hook(action));
        OUT.open();
        ERR.open();
        System.setIn(new ByteArrayInputStream(input));
        try (Tools tools = new Tools(path)) {
            Thread main = new Thread(() -> callMain(run, words, tools), "main");
            main.setContextClassLoader(tools);
            main.setDaemon(true);
            main.start();
            run.outputs.join();
            join(main, UNWIND_MILLIS_MAX);
        }
        return run;
    }

    private static void callMain(Run run, String[] words, Tools tools) {
        try {
            String[] arguments = Arrays.copyOfRange(words, 1, words.length);
            tools.loadClass(words[0]).getMethod("main", String[].class).invoke(null, (Object) arguments);
            run.end(0);
        } catch (InvocationTargetException thrown) {
            if (!(thrown.getCause() instanceof Ended)) uncaught(run, thrown.getCause());
        } catch (ReflectiveOperationException wrong) {
            uncaught(run, wrong);
        }
    }

    private static void uncaught(Run run, Throwable thrown) {
        System.err.print("Exception in thread \"main\" ");
        thrown.printStackTrace();
        run.end(UNCAUGHT);
    }

    private static int clientsLeft() {
        int left = 0;
        for (Thread each : Thread.getAllStackTraces().keySet()) {
            if (!each.getName().startsWith(CLIENT_THREAD)) continue;
            join(each, CLOSE_MILLIS_MAX);
            if (each.isAlive()) left++;
        }
        return left;
    }

    private static URL[] path() throws MalformedURLException {
        List<URL> found = new ArrayList<>();
        for (String each : System.getProperty("java.class.path").split(File.pathSeparator)) {
            found.add(new File(each).toURI().toURL());
        }
        return found.toArray(new URL[0]);
    }

    private static String[] words(DataInputStream requests) throws IOException {
        String[] found = new String[requests.readInt()];
        for (int index = 0; index < found.length; index++) {
            found[index] = new String(bytes(requests), StandardCharsets.UTF_8);
        }
        return found;
    }

    private static byte[] bytes(DataInputStream requests) throws IOException {
        return requests.readNBytes(requests.readInt());
    }
}
