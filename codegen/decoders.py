from codegen.formats import Formats
from codegen.layout import NamedMessage


def plan_decoders(
    message: NamedMessage, formats: Formats
) -> tuple[dict[int, str], list[list[str]]]:
    return {}, []
