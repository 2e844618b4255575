package judge;

import java.util.List;

/**
 * The kinds of bytes that are judged, each with the framing around a message's body.
 *
 * <p>Names and framing are those of the JSON contract of the wire command.
 */
enum Kind {
    REQUEST, RESPONSE, REQUEST_HEADER, RESPONSE_HEADER, METADATA_RECORD, METADATA_FRAME, COORDINATOR_RECORD,
    COORDINATOR_KEY, COORDINATOR_VALUE, RAFT_RECORD, CONTROL_RECORD, CONSUMER_PROTOCOL, PRINCIPAL,
    VERSION_PREFIXED, REMOTE_LOG_RECORD, RECORDS;

    private static final List<String> CONTROL_NAMES = List.of("EndTxnMarker", "ControlRecordTypeSchema");

    String text() {
        return name().toLowerCase(java.util.Locale.ROOT);
    }

    static Kind of(String text) {
        return valueOf(text.toUpperCase(java.util.Locale.ROOT));
    }

    /** The kinds under which one schema of the given type and name is judged. */
    static List<Kind> ofSchema(String type, String name, String packageName) {
        switch (type) {
            case "request":
                return List.of(REQUEST);
            case "response":
                return List.of(RESPONSE);
            case "header":
                return List.of(name.equals("RequestHeader") ? REQUEST_HEADER : RESPONSE_HEADER);
            case "metadata":
                return packageName.contains(".remote.")
                    ? List.of(REMOTE_LOG_RECORD)
                    : List.of(METADATA_RECORD, METADATA_FRAME);
            case "coordinator-key":
                return List.of(COORDINATOR_RECORD, COORDINATOR_KEY);
            case "coordinator-value":
                return List.of(COORDINATOR_RECORD, COORDINATOR_VALUE);
            default:
                return ofData(name, packageName);
        }
    }

    private static List<Kind> ofData(String name, String packageName) {
        if (packageName.contains(".remote.")) {
            return List.of(REMOTE_LOG_RECORD);
        }
        if (name.startsWith("ConsumerProtocol")) {
            return List.of(CONSUMER_PROTOCOL, VERSION_PREFIXED);
        }
        if (name.equals("DefaultPrincipalData")) {
            return List.of(PRINCIPAL, VERSION_PREFIXED);
        }
        return List.of(CONTROL_NAMES.contains(name) ? CONTROL_RECORD : RAFT_RECORD);
    }
}
