"""What graphc does, told through `logging`: one logger for each topic.

`graphc.set_logs("passes")`, or GRAPHC_LOGS=trace,passes in the environment, shows a topic on stderr. A program that
configures `logging` itself gets the same records from the loggers.
"""

from __future__ import annotations

import difflib
import logging
from typing import Final

TOPICS: Final = {
    "trace": "graphc.trace",  # each function that is traced: how many nodes, from which line, in which time
    "passes": "graphc.passes",  # what each pass of the optimizer changes, and its time
    "cache": "graphc.lowering.cache",  # programs that are loaded from disk, kept, dropped
    "recompiles": "graphc.recompiles",  # why a function is compiled once more
}
trace, passes, cache, recompiles = map(logging.getLogger, TOPICS.values())
_handler = logging.StreamHandler()
_handler.setFormatter(logging.Formatter("[%(name)s] %(message)s"))


def set_logs(*topics: str) -> None:
    """Show what graphc does about these topics, and no others, on stderr; "all" stands for all of them.

    trace, passes, cache, recompiles: see `graphc.logs.TOPICS`. Raises ValueError for another name.
    """
    wanted = {*TOPICS} if "all" in topics else {*topics}
    for name in wanted - {*TOPICS}:
        near = difflib.get_close_matches(name, TOPICS, 1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise ValueError(f"no logs about '{name}': there are {', '.join(TOPICS)}, and all.{hint}")
    root = logging.getLogger("graphc")
    root.removeHandler(_handler)
    for topic, logger in TOPICS.items():
        logging.getLogger(logger).setLevel(logging.INFO if topic in wanted else logging.NOTSET)
    if wanted and not root.hasHandlers():  # else the program's own handlers show them
        root.addHandler(_handler)
