"""fabsim against packets: completion times of a packet-level simulator, case by case."""

from fabsim.validation.compare import COLUMNS, Row
from fabsim.validation.summary import by_family
from fabsim.validation.table import as_text, validate, write_csv

__all__ = ["COLUMNS", "Row", "as_text", "by_family", "validate", "write_csv"]
