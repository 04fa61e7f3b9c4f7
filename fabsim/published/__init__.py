"""fabsim against published measurements: the rows of a folder's table, each with what was measured and by whom."""

from fabsim.published.rows import NAME, Row, read_rows
from fabsim.published.table import Found, as_text, validate, write_csv

__all__ = ["NAME", "Found", "Row", "as_text", "read_rows", "validate", "write_csv"]
