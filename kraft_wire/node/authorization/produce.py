"""Guards Produce: the transactional id, then topic by topic; unknown ids are refused first."""

from typing import Final, cast

from kraft_wire.broker.context import CLOSE, Silence
from kraft_wire.node.authorization.asker import Asked, Passed, Verdict
from kraft_wire.node.authorization.splitting import by_id_or_name, split
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kraft_wire.wire.message import Message

__all__ = ["produce"]

_TOPIC_IDS_FROM: Final = 13


def produce(asked: Asked) -> Verdict:
    """Serve the topics that may be written; with acks=0 a refusal closes the connection."""
    request = cast("ProduceRequest", asked.request)
    write_id, write_topic = asked.needs
    name = request.transactional_id
    if _is_transactional(request) and (name is None or not asked.asker.meets(write_id, name)):
        return _refused(request, request.topic_data, write_id.error)
    name_of = by_id_or_name(asked, _TOPIC_IDS_FROM)
    request.topic_data, hidden = split(asked, write_topic, request.topic_data, name_of)
    if not hidden:
        return Passed(request)
    if not request.topic_data:
        return _refused(request, hidden, write_topic.error)
    answers = [_answer(topic, write_topic.error) for topic in hidden]

    def finish(answer: Message | Silence) -> Message | Silence:
        if isinstance(answer, ProduceResponse):
            answer.responses = answer.responses + answers
            return answer
        return CLOSE

    return Passed(request, finish)


def _is_transactional(request: ProduceRequest) -> bool:
    # Imported on first use: most producers are not transactional, and imports delay the start.
    from kraft_wire.broker.producing.transactional_produce import is_transactional

    return is_transactional(request.topic_data)


def _refused(
    request: ProduceRequest, topics: list[TopicProduceData], error: ErrorCode
) -> Message | Silence:
    if request.acks == 0:
        return CLOSE
    return ProduceResponse(responses=[_answer(topic, error) for topic in topics])


def _answer(topic: TopicProduceData, error: ErrorCode) -> TopicProduceResponse:
    return TopicProduceResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=[
            PartitionProduceResponse(
                index=each.index,
                error_code=error,
                base_offset=-1,
                log_append_time_ms=-1,
                log_start_offset=-1,
                error_message=None,
            )
            for each in topic.partition_data
        ],
    )
