"""Where PyTorch has the classes and functions that are elsewhere here: their names in files and in `repr`.

What is not in the table has the same path in both, with "torch" for "eager".
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache
from typing import Any

# module here > module of PyTorch: names ("." is the top)
HOMES = """
autograd.custom_ops > _library.custom_ops: CustomOpDef
autograd.scheduled_profiler > profiler.profiler: ProfilerAction profile
compiling.scripts > jit._script: ScriptModule
core.devices > .: device
core.dtypes > .: Size dtype
core.grad_mode > autograd.grad_mode: enable_grad inference_mode no_grad set_grad_enabled
core.layouts > .: layout memory_format
core.limits > .: finfo iinfo
core.pytree > utils._pytree: GetAttrKey MappingKey SequenceKey TreeSpec
core.parameter > nn.parameter: Parameter
core.tensor > .: Tensor
cuda > cuda.graphs: CUDAGraph graph
cuda > cuda.streams: Event Stream
distributions.transforms.joined > distributions.transforms: CatTransform StackTransform
distributions.transforms.pointwise > distributions.transforms: AbsTransform AffineTransform
    CumulativeDistributionTransform ExpTransform PowerTransform SigmoidTransform SoftplusTransform TanhTransform
distributions.transforms.transform > distributions.transforms: ComposeTransform IndependentTransform
    ReshapeTransform Transform
distributions.transforms.vectors > distributions.transforms: CorrCholeskyTransform LowerCholeskyTransform
    PositiveDefiniteTransform SoftmaxTransform StickBreakingTransform
engine.function > autograd.function: Function FunctionCtx
engine.grad_fn > autograd.graph: Node
fx > fx._symbolic_trace: Tracer
fx > fx.graph: Graph
fx > fx.graph_module: GraphModule
fx > fx.node: Node
fx > fx.proxy: Proxy
library.libraries > library: Library
multiprocessing.spawning > multiprocessing.spawn: ProcessContext ProcessExitedException ProcessRaisedException
nn.buffer > nn.parameter: Buffer
nn.hooks > utils.hooks: RemovableHandle
nn.module > nn.modules.module: Module
nn.modules.attention > nn.modules.activation: MultiheadAttention
nn.modules.attention > nn.modules.linear: NonDynamicallyQuantizableLinear
nn.modules.batchnorm > nn.modules.instancenorm: InstanceNorm1d InstanceNorm2d InstanceNorm3d
nn.modules.cells > nn.modules.rnn: GRUCell LSTMCell RNNCell RNNCellBase
nn.modules.images > nn.modules.channelshuffle: ChannelShuffle
nn.modules.images > nn.modules.fold: Fold Unfold
nn.modules.images > nn.modules.pixelshuffle: PixelShuffle PixelUnshuffle
nn.modules.images > nn.modules.upsampling: Upsample UpsamplingBilinear2d UpsamplingNearest2d
nn.modules.lazy_layers > nn.modules.batchnorm: LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d
nn.modules.lazy_layers > nn.modules.conv: LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d
    LazyConvTranspose3d
nn.modules.lazy_layers > nn.modules.instancenorm: LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d
nn.modules.lazy_layers > nn.modules.linear: LazyLinear
nn.modules.linear > nn.modules.distance: CosineSimilarity PairwiseDistance
nn.modules.linear > nn.modules.flatten: Flatten Unflatten
nn.modules.packed > nn.utils.rnn: PackedSequence
nn.modules.parameter_containers > nn.modules.container: ParameterDict ParameterList
nn.modules.sync_batchnorm > nn.modules.batchnorm: SyncBatchNorm
optim.adafactor > optim: Adafactor
optim.adam > optim.adamw: AdamW
optim.lr_scheduler.base > optim.lr_scheduler: LRScheduler
optim.lr_scheduler.composed > optim.lr_scheduler: ChainedScheduler SequentialLR
optim.lr_scheduler.cosine > optim.lr_scheduler: CosineAnnealingLR CosineAnnealingWarmRestarts
optim.lr_scheduler.cycles > optim.lr_scheduler: CyclicLR OneCycleLR
optim.lr_scheduler.decay > optim.lr_scheduler: ConstantLR ExponentialLR LinearLR MultiStepLR PolynomialLR StepLR
optim.lr_scheduler.functions > optim.lr_scheduler: LambdaLR MultiplicativeLR
optim.lr_scheduler.plateau > optim.lr_scheduler: ReduceLROnPlateau
optim.muon > optim: Muon
processes.messages > distributed.distributed_c10d: P2POp
processes.stores > _C._distributed_c10d: FileStore HashStore TCPStore
processes.stores > distributed.distributed_c10d: PrefixStore Store
processes.work > distributed.distributed_c10d: Work
processes.world > distributed.distributed_c10d: Backend GroupMember ProcessGroup ReduceOp group
profiling.events > autograd.profiler_util: EventList
profiling.recorder > autograd.profiler: record_function
rng.generator > _C: Generator
sparse.invariants > sparse: check_sparse_tensor_invariants
surface.errors > .: AcceleratorError OutOfMemoryError
surface.legacy_types > .: BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor
    IntTensor LongTensor ShortTensor
utils.benchmark.compare > utils.benchmark.utils.compare: Colorize Compare
utils.benchmark.measurement > utils.benchmark.utils.common: Measurement TaskSpec
utils.benchmark.timer > utils.benchmark.utils.timer: Language Timer
utils.data.iteration > utils.data.dataloader: _MultiProcessingDataLoaderIter _SingleProcessDataLoaderIter
"""
OURS, THEIRS = "eager", "torch"
# where functions are public whose file is no module of PyTorch; generated ones are of no file
PUBLIC = ("nn.functional", ".", "special", "linalg", "fft")
NOT_FOUND = "Can't get attribute '{name}' on the module '{module}' of PyTorch: it is not here"
_METHODS_OF = {("torch._C", "_VariableFunctionsClass"): ".", ("torch._C", "TensorBase"): "Tensor"}


def _path(root: str, module: str) -> str:
    return root if module == "." else f"{root}.{module}"


def _rows() -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    for line in HOMES.strip().replace("\n    ", " ").splitlines():
        here, _, rest = line.partition(" > ")
        there, _, names = rest.partition(": ")
        for name in names.split():
            yield (_path(OURS, here), name), (_path(THEIRS, there), name)


@cache
def _theirs() -> dict[tuple[str, str], tuple[str, str]]:
    return dict(_rows())


@cache
def _ours() -> dict[tuple[str, str], tuple[str, str]]:
    return {there: here for here, there in _rows()}


def is_ours(module: Any) -> bool:
    """Whether a `__module__` is one of this package."""
    return isinstance(module, str) and (module == OURS or module.startswith(f"{OURS}."))


def pytorch_name(value: Any) -> tuple[str, str]:
    """(module, qualified name) under which PyTorch has a class or function of this package."""
    module, name = value.__module__, value.__qualname__
    if not isinstance(value, type):
        for place in PUBLIC:
            if getattr(_module(place), name, None) == value:
                return _path(THEIRS, place), name
    return _theirs().get((module, name), (THEIRS + module.removeprefix(OURS), name))


def found(module: str, name: str) -> Any:
    """What stands here for `name` in a module of PyTorch. Raises AttributeError if nothing does."""
    if (module, name) in _METHODS_OF:
        place = _METHODS_OF[module, name]
        return _module(".") if place == "." else getattr(_module("."), place)
    module, name = _ours().get((module, name), (module, name))
    path = module.removeprefix(THEIRS).removeprefix(OURS).removeprefix(".") or "."
    for place in (path, *(PUBLIC if path.startswith("_C") else ())):
        try:
            value: Any = _module(place)
            for part in name.split("."):
                value = getattr(value, part)
        except (ImportError, AttributeError):
            continue
        return value
    raise AttributeError(NOT_FOUND.format(name=name, module=module))


def _module(place: str) -> Any:
    return importlib.import_module(_path(OURS, place))
