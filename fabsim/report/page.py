"""The page itself: headings, tables, texts and pictures put together, with plotly's script inline."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from fabsim.errors import InputError

if TYPE_CHECKING:
    import plotly.graph_objects as go

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 1200px; margin: 2.5em auto; padding: 0 1.5em }
h1 { font-size: 1.7em; margin-bottom: 0 } h2 { font-size: 1.2em; margin-top: 2.2em; border-bottom: 1px solid #ddd }
p.lead { color: #666; margin-top: .2em }
.wide { overflow-x: auto; max-height: 34em; overflow-y: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .88em }
th, td { padding: .25em .7em; text-align: right; border-bottom: 1px solid #eee; white-space: nowrap }
th { border-bottom: 2px solid #bbb; position: sticky; top: 0; background: #fff }
td.text, th:first-child, td:first-child { text-align: left }
pre { background: #f6f6f4; padding: 1em; overflow-x: auto; font-size: .85em; line-height: 1.4 }
"""


def whole(title: str, lead: str, sections: Iterable[tuple[str, str]]) -> str:
    """The page: `sections` are headings with HTML. Raises InputError where plotly is missing."""
    script = plotly().offline.get_plotlyjs()
    body = "\n".join(f"<h2>{escape(head)}</h2>\n{content}" for head, content in sections if content)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f"<style>{STYLE}</style>\n<script>{script}</script>\n</head>\n<body>\n"
        f'<h1>{escape(title)}</h1>\n<p class="lead">{escape(lead)}</p>\n{body}\n</body>\n</html>\n'
    )


def plotly() -> Any:
    """The library, which comes with an extra. Raises InputError where it is missing."""
    try:
        import plotly
        import plotly.graph_objects
        import plotly.offline
    except ImportError:
        raise InputError("a report needs plotly, which is not installed: pip install 'fabsim[report]'") from None
    return plotly


def picture(figure: go.Figure) -> str:
    """A figure that can be zoomed into."""
    return figure.to_html(full_html=False, include_plotlyjs=False, config={"displaylogo": False, "responsive": True})


def table(rows: Sequence[Sequence[str]]) -> str:
    """The first row is the head."""
    head, *body = [[escape(cell) for cell in row] for row in rows]
    lines = ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in body]
    heads = "".join(f"<th>{cell}</th>" for cell in head)
    inner = f"<thead><tr>{heads}</tr></thead><tbody>\n" + "\n".join(lines) + "\n</tbody>"
    return f'<div class="wide"><table>{inner}</table></div>'


def text(content: str) -> str:
    """As it is."""
    return f"<pre>{escape(content)}</pre>"


def origin(scenario: str, versions: str | Mapping[str, str], command: str) -> list[tuple[str, str]]:
    """The last sections of all pages: how to run it again, the scenario, and what it was run with."""
    found = json.loads(versions) if isinstance(versions, str) else dict(versions)
    again = (
        "<p>Save the scenario below as <code>again.yaml</code> (files that it names are looked for beside it):</p>"
        + text(command)
    )
    made = table([["made with", "version"], *([str(name), str(value)] for name, value in found.items())])
    return [("Run it again", again), ("Scenario", text(scenario)), ("Versions", made)]
