package org.apache.kafka.controller;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.AbstractMap.SimpleImmutableEntry;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.function.Supplier;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.FeatureUpdate.UpgradeType;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.StaleBrokerEpochException;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.metadata.*;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.*;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * The managers of Apache's own controller, in whose package this stands, under a story told line by
 * line: "begin" a new cluster; "record" HEX is replayed; "time" MS is the clock; "tick" fences who is
 * silent; "ask" KEY VERSION HEX is a request. The last two print an answer: the response in hex,
 * "error N", or "codes N ...", then "|" and the records in hex.
 *
 * Two things are as in ours: who is fenced is not fenced again, and what a broker said of its
 * offset stays true when its registration changes.
 */
public final class ControllerJudge {
    private static final MetadataRecordSerde SERDE = new MetadataRecordSerde();
    private static long nowMs;
    private static long next;
    private static FeatureControlManager features;
    private static ClusterControlManager cluster;
    private static ConfigurationControlManager configs;
    private static ReplicationControlManager replication;
    private static final Map<BrokerIdAndEpoch, Long> told = new HashMap<>();

    private static final Time TIME = new Time() {
        @Override
        public long milliseconds() {
            return nowMs;
        }

        @Override
        public long nanoseconds() {
            return nowMs * 1_000_000L;
        }

        @Override
        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object it, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    };

    private static void begin() {
        nowMs = next = 0;
        told.clear();
        SnapshotRegistry registry = new SnapshotRegistry(new LogContext());
        features = new FeatureControlManager.Builder().setSnapshotRegistry(registry).setQuorumFeatures(
            new QuorumFeatures(1, QuorumFeatures.defaultSupportedFeatureMap(true), List.of(1)))
            .setClusterFeatureSupportDescriber(new ClusterFeatureSupportDescriber() {
                @Override
                public Iterator<Map.Entry<Integer, Map<String, VersionRange>>> brokerSupported() {
                    return cluster.brokerSupportedFeatures();
                }

                @Override
                public Iterator<Map.Entry<Integer, Map<String, VersionRange>>> controllerSupported() {
                    return Collections.emptyIterator();
                }
            }).build();
        cluster = new ClusterControlManager.Builder().setClusterId("").setTime(TIME)
            .setSnapshotRegistry(registry).setSessionTimeoutNs(9_000_000_000L)
            .setFeatureControlManager(features).setBrokerShutdownHandler(
                (id, clean, records) -> replication.handleBrokerShutdown(id, clean, records)).build();
        Map<ConfigResource.Type, ConfigDef> definitions = Map.of(
            ConfigResource.Type.BROKER, new ConfigDef(kafka.server.KafkaConfig.configDef()),
            ConfigResource.Type.TOPIC, LogConfig.configDefCopy());
        configs = new ConfigurationControlManager.Builder().setSnapshotRegistry(registry)
            .setFeatureControl(features).setNodeId(1).setKafkaConfigSchema(new KafkaConfigSchema(
                definitions, ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS)).build();
        replication = new ReplicationControlManager.Builder().setSnapshotRegistry(registry)
            .setConfigurationControl(configs).setClusterControl(cluster).setFeatureControl(features)
            .build();
        cluster.activate();
    }

    private static void replay(ApiMessage record) {
        long offset = next++;
        switch (MetadataRecordType.fromId(record.apiKey())) {
            case REGISTER_BROKER_RECORD -> cluster.replay((RegisterBrokerRecord) record, offset);
            case UNREGISTER_BROKER_RECORD -> cluster.replay((UnregisterBrokerRecord) record);
            case BROKER_REGISTRATION_CHANGE_RECORD ->
                cluster.replay((BrokerRegistrationChangeRecord) record);
            case TOPIC_RECORD -> replication.replay((TopicRecord) record);
            case PARTITION_RECORD -> replication.replay((PartitionRecord) record);
            case PARTITION_CHANGE_RECORD -> replication.replay((PartitionChangeRecord) record);
            case REMOVE_TOPIC_RECORD -> replication.replay((RemoveTopicRecord) record);
            case CLEAR_ELR_RECORD -> replication.replay((ClearElrRecord) record);
            case CONFIG_RECORD -> configs.replay((ConfigRecord) record);
            case FEATURE_LEVEL_RECORD -> features.replay((FeatureLevelRecord) record);
            default -> { }
        }
        told.forEach((broker, metadataOffset) -> {
            BrokerRegistration known = cluster.registration(broker.id());
            if (known != null && known.epoch() == broker.epoch()) {
                cluster.heartbeatManager().touch(broker.id(), known.fenced(), metadataOffset);
            }
        });
    }

    private static String appended(List<ApiMessageAndVersion> records) {
        List<String> written = new ArrayList<>();
        for (ApiMessageAndVersion each : records) {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer buffer = ByteBuffer.allocate(SERDE.recordSize(each, cache));
            SERDE.write(each, cache, new ByteBufferAccessor(buffer));
            written.add(HexFormat.of().formatHex(buffer.array()));
            replay(each.message());
        }
        return String.join(",", written);
    }

    private static String answer(Message response, short version, List<ApiMessageAndVersion> records) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(response.size(cache, version));
        response.write(new ByteBufferAccessor(buffer), cache, version);
        return HexFormat.of().formatHex(buffer.array()) + "|" + appended(records);
    }

    private static String registered(BrokerRegistrationRequestData request, short version) {
        Map<String, Short> known =
            new HashMap<>(features.finalizedFeatures(Long.MAX_VALUE).featureMap());
        known.put("kraft.version", (short) 0);
        ControllerResult<BrokerRegistrationReply> result = cluster.registerBroker(request, next,
            new FinalizedControllerFeatures(known, Long.MAX_VALUE), version >= 3);
        return answer(new BrokerRegistrationResponseData().setBrokerEpoch(result.response().epoch()),
            version, result.records());
    }

    private static String heard(BrokerHeartbeatRequestData request, short version) {
        int id = request.brokerId();
        cluster.trackBrokerHeartbeat(id, request.brokerEpoch());
        OptionalLong registeredAt = cluster.registerBrokerRecordOffset(id);
        if (registeredAt.isEmpty()) throw new StaleBrokerEpochException("not registered");
        ControllerResult<BrokerHeartbeatReply> result =
            replication.processBrokerHeartbeat(request, registeredAt.getAsLong());
        BrokerHeartbeatReply reply = result.response();
        told.put(new BrokerIdAndEpoch(id, request.brokerEpoch()), request.currentMetadataOffset());
        String text = answer(new BrokerHeartbeatResponseData().setIsCaughtUp(reply.isCaughtUp())
            .setIsFenced(reply.isFenced()).setShouldShutDown(reply.shouldShutDown()), version,
            result.records());
        if (reply.inControlledShutdown()) {
            cluster.heartbeatManager().maybeUpdateControlledShutdownOffset(id, next - 1);
        }
        return text;
    }

    private static String configured(IncrementalAlterConfigsRequestData request) {
        Map<ConfigResource, Map<String, Map.Entry<OpType, String>>> changes = new LinkedHashMap<>();
        request.resources().forEach(resource -> {
            Map<String, Map.Entry<OpType, String>> keys = new LinkedHashMap<>();
            resource.configs().forEach(each -> keys.put(each.name(),
                new SimpleImmutableEntry<>(OpType.forId(each.configOperation()), each.value())));
            changes.put(new ConfigResource(ConfigResource.Type.forId(resource.resourceType()),
                resource.resourceName()), keys);
        });
        var result = configs.incrementalAlterConfigs(changes, false, true);
        StringBuilder codes = new StringBuilder("codes");
        result.response().values().forEach(each -> codes.append(" ").append(each.error().code()));
        return codes + "|" + appended(result.records());
    }

    private static String finalised(UpdateFeaturesRequestData request) {
        Map<String, Short> levels = new LinkedHashMap<>();
        Map<String, UpgradeType> kinds = new HashMap<>();
        request.featureUpdates().forEach(each -> {
            levels.put(each.feature(), each.maxVersionLevel());
            kinds.put(each.feature(), UpgradeType.fromCode(each.upgradeType()));
        });
        var result = configs.updateFeatures(levels, kinds, request.validateOnly(), 1);
        return "codes " + result.response().error().code() + "|" + appended(result.records());
    }

    private static String asked(short key, short version, byte[] body) {
        ApiMessage request = ApiMessageType.fromApiKey(key).newRequest();
        request.read(new ByteBufferAccessor(ByteBuffer.wrap(body)), version);
        ControllerRequestContext context = new ControllerRequestContext(
            new RequestHeaderData().setRequestApiKey(key).setRequestApiVersion(version),
            KafkaPrincipal.ANONYMOUS, OptionalLong.empty());
        ControllerResult<? extends Message> result = switch (key) {
            case 43 -> replication.electLeaders((ElectLeadersRequestData) request);
            case 45 -> replication.alterPartitionReassignments(
                (AlterPartitionReassignmentsRequestData) request);
            case 46 -> ControllerResult.of(List.of(), replication.listPartitionReassignments(
                ((ListPartitionReassignmentsRequestData) request).topics(), Long.MAX_VALUE));
            case 56 -> replication.alterPartition(context, (AlterPartitionRequestData) request);
            case 73 -> replication.handleAssignReplicasToDirs((AssignReplicasToDirsRequestData) request);
            default -> null;
        };
        if (result != null) return answer(result.response(), version, result.records());
        return switch (key) {
            case 37 -> {
                var grown = replication.createPartitions(
                    context, new ArrayList<>(((CreatePartitionsRequestData) request).topics()));
                yield answer(new CreatePartitionsResponseData().setResults(grown.response()), version,
                    grown.records());
            }
            case 44 -> configured((IncrementalAlterConfigsRequestData) request);
            case 57 -> finalised((UpdateFeaturesRequestData) request);
            case 62 -> registered((BrokerRegistrationRequestData) request, version);
            case 63 -> heard((BrokerHeartbeatRequestData) request, version);
            case 64 -> answer(new UnregisterBrokerResponseData(), version, replication.unregisterBroker(
                ((UnregisterBrokerRequestData) request).brokerId()).records());
            default -> throw new IllegalStateException("key " + key);
        };
    }

    private static String fenced() {
        List<String> written = new ArrayList<>();
        for (ControllerResult<Boolean> result = replication.maybeFenceOneStaleBroker();
                result.response(); result = replication.maybeFenceOneStaleBroker()) {
            int last = result.records().size() - 1;
            boolean wasFenced = last >= 0
                && result.records().get(last).message() instanceof BrokerRegistrationChangeRecord change
                && cluster.registration(change.brokerId()).fenced();
            if (last >= 0 && !wasFenced) written.add(appended(result.records()));
        }
        return "|" + String.join(",", written);
    }

    private static String answered(String[] words) {
        try {
            return asked(Short.parseShort(words[1]), Short.parseShort(words[2]),
                HexFormat.of().parseHex(words[3]));
        } catch (Exception error) {
            Errors code = Errors.forException(error);
            if (code == Errors.UNKNOWN_SERVER_ERROR) throw error;
            return "error " + code.code();
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder output = new StringBuilder();
        for (String line; (line = input.readLine()) != null; ) {
            String[] words = line.split(" ", -1);
            switch (words[0]) {
                case "begin" -> begin();
                case "time" -> nowMs = Long.parseLong(words[1]);
                case "tick" -> output.append(fenced()).append('\n');
                case "ask" -> output.append(answered(words)).append('\n');
                case "record" -> {
                    ByteBuffer value = ByteBuffer.wrap(HexFormat.of().parseHex(words[1]));
                    replay(SERDE.read(new ByteBufferAccessor(value), value.remaining()).message());
                }
                default -> throw new IllegalStateException(line);
            }
        }
        System.out.print(output);
    }

    private ControllerJudge() {
    }
}
