# Written by `python -m tests.stubs`: change the sources or the tables there, and run it again.
"""graphc: trace a define-by-run program into a graph, differentiate and optimize it, and lower it to XLA.

The names below load their part of the compiler on first use, so that `import graphc.ops` stays light."""

from graphc import errors as errors, ops as ops
from graphc.capture.assuming import assume as assume
from graphc.capture.building import gradients as gradients, placeholder as placeholder
from graphc.capture.flow.control import cond as cond, fori_loop as fori_loop, map as map, scan as scan, switch as switch, while_loop as while_loop
from graphc.capture.flow.microbatches import microbatched as microbatched
from graphc.capture.trace import trace as trace
from graphc.compiling.decorator import compile as compile
from graphc.compiling.disable import disable as disable, enable as enable
from graphc.compiling.memory import memory as memory
from graphc.explaining.explanation import explain as explain
from graphc.explaining.steps import steps as steps
from graphc.ir.files import load as load
from graphc.ir.graph import Graph as Graph, Node as Node
from graphc.logs import set_logs as set_logs
from graphc.lowering.export import export as export, stablehlo as stablehlo, to_graphdef as to_graphdef
from graphc.lowering.lowering import lower as lower
from graphc.lowering.standalone import codegen as codegen
from graphc.passes.pipeline import mechanisms as mechanisms, optimize as optimize
from graphc.running.recording import record as record
from graphc.running.torch_names import torch_names as torch_names
from graphc.session import Session as Session, function as function
from graphc.sharding.constraint import shard as shard
from graphc.sharding.planning import plan as plan
from graphc.sharding.simulation import simulate as simulate

__version__: str
