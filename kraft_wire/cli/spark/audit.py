"""`kraft-wire spark audit`: what `kraft-wire audit` does, spread over Spark's workers."""

import typer

from kraft_wire.cli.audit import (
    Acks,
    AsJson,
    Checks,
    FailOn,
    FailsOn,
    HighWatermark,
    Output,
    exit_code,
    print_json,
    print_table,
)
from kraft_wire.cli.node_dirs import NodeDirs, paths_of
from kraft_wire.cli.spark.options import Conf, Jars, Master, refusing, settings_of

__all__ = ["audit"]


def audit(
    node_dirs: NodeDirs,
    output: Output = None,
    checks: Checks = None,
    acks: Acks = None,
    high_watermark: HighWatermark = None,
    fail_on: FailsOn = FailOn.ERROR,
    as_json: AsJson = False,
    master: Master = "local[*]",
    conf: Conf = None,
    jars: Jars = None,
) -> None:
    """Check log directories: damage, replicas that differ, losses."""
    with refusing(jars) as jar_files:
        from kraft_wire.spark.session import running
        from kraft_wire.spark.verbs.audit import prepare_audit, run_prepared
        from kraft_wire.spark.verbs.progress import progress

        paths = paths_of(node_dirs)
        target = None if output is None else str(output)
        prepared = prepare_audit(
            paths, checks=checks, acks=acks, high_watermark=high_watermark, output=target
        )
        settings = settings_of(conf)
        with running(master, conf=settings, jars=jar_files) as spark, progress("audit") as bar:
            bar.plan(prepared.plan.size_bytes)
            result = run_prepared(spark, prepared, target, tell=bar.tell)
    if as_json:
        print_json(result)
    else:
        print_table(result, output)
    raise typer.Exit(exit_code(result, fail_on))
