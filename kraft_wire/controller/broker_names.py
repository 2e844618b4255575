"""The name of a broker's settings: the number of a node, in any form that Java reads.

A broker of 4.3.1 takes its own number alone; ours take that of every registered node.
"""

from kraft_wire.controller.controller import Controller
from kraft_wire.controller.refusal import Refusal
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.settings.broker import node_number
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["check_broker_name", "check_logger_name", "foreign_broker_problem"]


def foreign_broker_problem(image: MetadataImage, own_id: int, name: str) -> str | None:
    """Return why a broker refuses the settings of this name, in Kafka's words, or None."""
    assert own_id >= 0, own_id
    number = node_number(name)
    if number is None:
        return _no_integer(name)
    if _is_in_cluster(image, own_id, number):
        return None
    return f"Unexpected broker id, expected {own_id}, but received {name}"


def check_broker_name(controller: Controller, name: str, *, is_direct: bool) -> None:
    """Refuse the settings of a node that is not registered; `is_direct`: no broker has asked.

    Errors: INVALID_REQUEST (no number, a negative one if the request is direct, unknown to this
    node's broker), BROKER_ID_NOT_REGISTERED (unknown to a controller).
    """
    assert name, "the empty name stands for all brokers"
    number = node_number(name)
    if is_direct and number is None:
        words = "Unable to parse broker name as a base 10 number."
        raise Refusal(ErrorCode.INVALID_REQUEST, words)
    if is_direct and number is not None and number < 0:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")
    problem = foreign_broker_problem(controller.image, controller.node_id, name)
    if problem is None:
        return
    has_broker = controller.node_id in controller.image.brokers
    if number is None or (has_broker and not is_direct):
        raise Refusal(ErrorCode.INVALID_REQUEST, problem)
    assert number not in controller.image.brokers, number
    raise Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {number} found.")


def check_logger_name(controller: Controller, name: str) -> None:
    """Refuse the log levels of a node that the cluster does not have: INVALID_REQUEST."""
    own_id, number = controller.node_id, node_number(name)
    assert own_id >= 0, own_id
    if number is None:
        raise Refusal(ErrorCode.INVALID_REQUEST, _no_integer(name))
    if not _is_in_cluster(controller.image, own_id, number):
        problem = f"Unexpected node id. Expected {own_id}, but received {number}"
        raise Refusal(ErrorCode.INVALID_REQUEST, problem)


def _no_integer(name: str) -> str:
    assert node_number(name) is None, name
    return f"Node id must be an integer, but it is: {name}"


def _is_in_cluster(image: MetadataImage, own_id: int, number: int) -> bool:
    assert own_id >= 0, own_id
    return number == own_id or number in image.brokers or number in image.controllers
