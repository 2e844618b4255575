"""`--command-config FILE`: Kafka's client keys, for every command that dials a cluster.

`secured` adds the option to all commands of a verb that have a bootstrap address. The file's keys
apply to every connection of the process.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from kraft_wire.client.connection import use_security

__all__ = ["CommandConfig", "secured"]

_ADDRESSES: Final = ("bootstrap_server", "bootstrap_controller")
_NAME: Final = "command_config"
CommandConfig = Annotated[
    str | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        help="Kafka client settings: TLS, SASL PLAIN, SCRAM and OAUTHBEARER.",
    ),
]


def secured(app: typer.Typer) -> None:
    """Give the option to the commands of a verb; to be called behind the last of them."""
    for command in app.registered_commands:
        assert command.callback is not None, command
        signature = inspect.signature(command.callback)
        if any(name in signature.parameters for name in _ADDRESSES):
            command.callback = _with_option(command.callback, signature)


def _with_option(command: Callable[..., Any], signature: inspect.Signature) -> Callable[..., Any]:
    """Return the command with one more option, which it does not see itself."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        _use(options.pop(_NAME, None))
        return command(*arguments, **options)

    kind = inspect.Parameter.KEYWORD_ONLY
    option = inspect.Parameter(_NAME, kind, default=None, annotation=CommandConfig)
    parameters = [*signature.parameters.values(), option]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {**command.__annotations__, _NAME: CommandConfig}
    return run


def _use(path: str | None) -> None:
    """Read the file, or drop that of an earlier command of this process."""
    if path is None:
        use_security(None)
        return
    from kraft_wire.login.client_config import UnusableConfig, read_client_config

    try:
        security, ignored = read_client_config(Path(path))
    except UnusableConfig as error:
        raise typer.BadParameter(str(error)) from error
    if ignored:
        typer.echo(f"kraft-wire: {path}: ignored: {', '.join(ignored)}", err=True)
    use_security(security)
