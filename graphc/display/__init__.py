"""How results show. A report is a sequence of blocks; its text, its HTML and its page are all made of these.

`Displayed` is the base of reports. The blocks are `Remark`, `Table`, `Code`, `Picture`, `Section` and `Beside`.
"""

from graphc.display.blocks import Beside, Block, Code, Picture, Remark, Section, Table
from graphc.display.displayed import Displayed
from graphc.display.figures import bytes_text, plural, seconds_text
from graphc.display.plain import plain

__all__ = [
    "Beside", "Block", "Code", "Displayed", "Picture", "Remark", "Section", "Table", "bytes_text", "plain", "plural",
    "seconds_text",
]  # fmt: skip
