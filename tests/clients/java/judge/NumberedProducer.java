package judge;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Apache's idempotent producer, as it is by default, with numbered records: {@code NumberedProducer
 * BOOTSTRAP TOPIC PARTITIONS WRITER CODEC BLOCK LIFE PADDING_MAX}.
 *
 * <p>Each line of standard input is a number: records below it may be sent. They go to the partitions
 * in turn, {@code BLOCK} at a time; their values are {@code WRITER:NUMBER:xxx}. After {@code LIFE}
 * records another producer goes on, with an id of its own; it begins with a block for each partition,
 * and waits for their acknowledgements. At the end of the input all is flushed.
 *
 * <p>Standard output has a line for each answer: {@code NUMBER OFFSET}, -1 where the client does not
 * know the offset, or {@code NUMBER ! what went wrong}. No record is ever given up.
 */
public final class NumberedProducer {
    private final String[] arguments;
    private final int partitions;
    private final int block;
    private final int life;
    private KafkaProducer<byte[], byte[]> producer;
    private int sent;

    private NumberedProducer(String[] arguments) {
        this.arguments = arguments;
        this.partitions = Integer.parseInt(arguments[2]);
        this.block = Integer.parseInt(arguments[5]);
        this.life = Integer.parseInt(arguments[6]);
    }

    /** Send as far as standard input says, until it ends. */
    public static void main(String[] arguments) throws IOException {
        NumberedProducer numbered = new NumberedProducer(arguments);
        BufferedReader granted = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = granted.readLine(); line != null; line = granted.readLine()) {
            numbered.sendUpTo(Integer.parseInt(line));
        }
        numbered.end();
    }

    private void sendUpTo(int end) {
        while (sent < end) {
            if (sent % life == 0) {
                end();
                producer = begin();
            }
            send(sent++);
            if (sent % life == partitions * block) {
                producer.flush();
            }
        }
    }

    private KafkaProducer<byte[], byte[]> begin() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("client.id", "apache-" + arguments[3]);
        settings.put("acks", "all");
        settings.put("enable.idempotence", "true");
        settings.put("compression.type", arguments[4]);
        settings.put("linger.ms", "10");
        settings.put("delivery.timeout.ms", Integer.toString(Integer.MAX_VALUE));
        settings.put("max.block.ms", Long.toString(Long.MAX_VALUE));
        settings.put("reconnect.backoff.max.ms", "500");
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private void send(int number) {
        String padding = "x".repeat(number % Integer.parseInt(arguments[7]));
        byte[] value = (arguments[3] + ":" + number + ":" + padding).getBytes(StandardCharsets.UTF_8);
        int partition = number / block % partitions;
        producer.send(new ProducerRecord<>(arguments[1], partition, null, value), (answer, failure) -> {
            String told = failure == null ? Long.toString(answer.offset()) : "! " + failure;
            System.out.println(number + " " + told.replace('\n', ' '));
        });
    }

    private void end() {
        if (producer != null) {
            producer.close();
        }
    }
}
