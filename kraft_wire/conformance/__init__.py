"""A conformance suite that judges any Kafka broker from the wire.

Read `case` (the definition of a case), one file of `cases/` (an API key each), `subject` (a case's
requests to the broker), `run` (cases times versions), then `reports/`. The suite imports `wire` and
`model` only: it shares no code with the broker and controller that it also judges.
"""

from kraft_wire.conformance.case import Case, case
from kraft_wire.conformance.run import Row, rows_of, run_rows
from kraft_wire.conformance.verdict import Outcome, Verdict

__all__ = ["Case", "Outcome", "Row", "Verdict", "case", "rows_of", "run_rows"]
