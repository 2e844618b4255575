package example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

class OrdersTest {
    @RegisterExtension
    static final KraftWire KAFKA = new KraftWire();

    @Test
    void anOrderSurvivesALeaderThatMoves() throws Exception {
        int rule = KAFKA.inject(
                "{\"inject_error\": \"NOT_LEADER_OR_FOLLOWER\", \"api\": \"Produce\", \"when\": \"once\"}");
        Map<String, Object> settings = Map.of("bootstrap.servers", KAFKA.bootstrapServers());
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            var metadata = producer.send(new ProducerRecord<>("orders", "book")).get(30, TimeUnit.SECONDS);
            assertEquals(0, metadata.offset());
        }
        assertEquals(1, KAFKA.fired(rule));
    }
}
