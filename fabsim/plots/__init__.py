"""Pictures of results, as matplotlib figures; no display is needed, and nothing global is changed."""

from fabsim.plots.descent import before_after, descent
from fabsim.plots.figure import save
from fabsim.plots.heat import Shown, heat_map
from fabsim.plots.lines import completion_cdf, over_time
from fabsim.plots.overview import overview
from fabsim.plots.swept import plot

__all__ = [
    "Shown", "before_after", "completion_cdf", "descent", "heat_map", "over_time", "overview", "plot", "save",
]  # fmt: skip
