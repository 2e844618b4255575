"""KIP-595 in whole nodes: what a client of a broker sees of the quorum."""

from kraft_wire.node.outputs import Peer
from kraft_wire.wire.generated.describe_quorum import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.request_header import RequestHeader
from tests.node.quorum import HOST, Answer, NodeQuorum

ASKED = DescribeQuorumRequest(
    topics=[TopicData(topic_name="__cluster_metadata", partitions=[PartitionData()])]
)


class CombinedNodes(NodeQuorum):
    """Three nodes that are broker and controller in one."""

    def start(self, node_id: int, **overrides: str) -> None:
        port = self.members[node_id].port
        listeners = f"PLAINTEXT://{HOST}:{port + 10_000},CONTROLLER://{HOST}:{port}"
        super().start(node_id, process_roles="broker,controller", listeners=listeners, **overrides)

    def ask_broker(self, node_id: int, request: DescribeQuorumRequest) -> Answer:
        """Send a client's request to a broker's listener, and wait for the answer."""
        self._opened += 1
        peer = self._peers[node_id, self._opened] = Peer(self._opened, HOST, 1, "PLAINTEXT")
        answer = self._asked[node_id, self._opened] = Answer(request, request.MAX_VERSION)
        header = RequestHeader(
            request_api_key=request.API_KEY,
            request_api_version=request.MAX_VERSION,
            correlation_id=1,
            client_id="client",
        )
        frame = bytearray(header.encode(2)) + request.encode(request.MAX_VERSION)
        self._receive(node_id, peer, frame)
        self.drain(node_id)
        self.until(lambda: answer.response is not None)
        return answer


def test_broker_forwards_the_question_to_the_leader() -> None:
    """595-DESC-03: whichever broker is asked, the answer is the leader's."""
    quorum = CombinedNodes()
    leader = quorum.elect()
    quorum.advance(2_000)
    for node_id in quorum.voters:
        answer = quorum.ask_broker(node_id, ASKED)
        found = answer.response.topics[0].partitions[0]
        assert found.error_code == ErrorCode.NONE
        assert found.leader_id == leader
        assert [voter.replica_id for voter in found.current_voters] == [1, 2, 3]
        assert found.high_watermark > 0
