import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Prints name, code, retriability and message, between tabs, of every error of the release on the class path. */
public final class ErrorCodes {
    public static void main(String[] arguments) {
        for (Errors error : Errors.values()) {
            boolean retriable = error.exception() instanceof RetriableException;
            System.out.println(String.join(
                "\t", error.name(), String.valueOf(error.code()), String.valueOf(retriable), error.message()));
        }
    }
}
