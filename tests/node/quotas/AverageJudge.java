import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.stats.Avg;

/**
 * Measures averages as Apache's sensors of throttle times do.
 *
 * <p>A line is "new", a time to record with the moment in ms, or the moment of a measurement, whose
 * answer is a line.
 */
public class AverageJudge {
    public static void main(String[] arguments) throws Exception {
        MetricConfig config = new MetricConfig().samples(2).timeWindow(30, TimeUnit.SECONDS);
        Avg average = new Avg();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split(" ");
            if (line.equals("new"))
                average = new Avg();
            else if (fields.length == 2)
                average.record(config, Double.parseDouble(fields[0]), Long.parseLong(fields[1]));
            else
                System.out.println(average.measure(config, Long.parseLong(line)));
        }
    }
}
