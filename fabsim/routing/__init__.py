"""Routes: which links each flow uses, and in what shares."""

from fabsim.routing.choose import adaptive, all_paths, by_link_counts, drawn, ecmp, proportional, split
from fabsim.routing.explicit import check, explicit, numbers
from fabsim.routing.load import link_load, utilisation
from fabsim.routing.paths import Candidates, candidates
from fabsim.routing.routes import Routes
from fabsim.routing.valiant import valiant

__all__ = [
    "Candidates",
    "Routes",
    "adaptive",
    "all_paths",
    "by_link_counts",
    "candidates",
    "check",
    "drawn",
    "ecmp",
    "explicit",
    "link_load",
    "numbers",
    "proportional",
    "split",
    "utilisation",
    "valiant",
]
