package org.apache.kafka.common.test.junit;

import java.util.List;
import judge.cluster.Insides;
import judge.cluster.WireCluster;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.LifecycleMethodExecutionExceptionHandler;
import org.junit.jupiter.api.extension.TestExecutionExceptionHandler;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;

/**
 * Gives a `@ClusterTest` a cluster of kraft-wire nodes. It stands before the class of this name in
 * kafka-test-common-runtime, which starts Apache's nodes inside the test's own process.
 */
public class RaftClusterInvocationContext implements TestTemplateInvocationContext {
    private final String testName;
    private final ClusterConfig config;
    private final boolean isCombined;

    public RaftClusterInvocationContext(String testName, ClusterConfig config, boolean isCombined) {
        this.testName = testName;
        this.config = config;
        this.isCombined = isCombined;
    }

    /** Named as Apache's own does, so that the results of both can be compared. */
    @Override
    public String getDisplayName(int invocation) {
        String kind = isCombined ? "Combined" : "Isolated";
        String tags = String.join(",", config.displayTags());
        return String.format("%s [%d] Type=Raft-%s, %s", testName, invocation, kind, tags);
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        WireCluster cluster = new WireCluster(config, isCombined);
        return List.of(
                (BeforeEachCallback) context -> {
                    if (config.isAutoStart()) {
                        cluster.start();
                    }
                },
                (AfterTestExecutionCallback) context -> cluster.stop(),
                (AfterEachCallback) context -> cluster.stop(),  // also of one that could not start
                (TestExecutionExceptionHandler) (context, problem) -> {
                    throw Insides.abortedOr(problem);
                },
                new LifecycleMethodExecutionExceptionHandler() {
                    @Override
                    public void handleBeforeEachMethodExecutionException(ExtensionContext context, Throwable problem)
                            throws Throwable {
                        throw Insides.abortedOr(problem);
                    }
                },
                new ClusterInstanceParameterResolver(cluster));
    }
}
