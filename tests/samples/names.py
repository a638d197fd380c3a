"""What PyTorch has by name and this package has not: the recorded names, and a reason for each that is missing.

    python -m tests.samples.names

writes `names.txt` anew from the PyTorch that is installed: the public names of `PLACES`, without modules. docs/ops.md
shows what is made of them.
"""

from __future__ import annotations

import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

PLACES = (
    "torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special",
    "torch.masked", "torch.optim",
)  # fmt: skip
FILE = Path(__file__).parent / "names.txt"
_JIT = "TorchScript and its types; `graphc.trace` and `graphc.compile` capture programs"
_MEMORY = "memory that processes share: each has its own here, and what goes from one to another is copied"

# (reason, patterns of whole names, anywhere or in "place: name"), the first that holds
REASONS: tuple[tuple[str, str], ...] = (
    ("sparse layouts: all tensors are dense",
     r"(to_)?sparse_\w+|to_sparse|\w*(coalesced?|crow_indices|ccol_indices|col_indices|row_indices)(_copy)?|"
     r"(torch|torch.Tensor): (indices|values)(_copy)?|(torch|torch.Tensor): (smm|sspaddmm)|saddmm|spmm|dsmm|hsmm|hspmm|"
     r"resize_as_sparse_|SparseAdam"),
    ("quantized and other packed numbers, which NumPy does not have",
     r"\w*(quant|fbgemm|choose_qparams)\w*|q_\w+|qscheme|q?u?int\d\w*|qu?int\w*|QU?Int\w+|bits\w*|float[48]_\w+|per_(channel|tensor)_\w+|"
     r"int_repr|bit|u?int[1-7]|complex32|chalf|ScalingType|SwizzleType|scaled_\w*mm|grouped_mm"),
    ("nested (jagged) tensors", r"jagged|to_padded_tensor"),
    ("other devices and their libraries: results are the CPU's here",
     r"(cudnn|miopen|mkldnn)\w*|to_mkldnn|is_(vulkan|maia|mtia|ipu)\w*|ipu|mtia|\w*[Ss]tream\w*|Event|DeviceObjType|"
     r"is_cudnn\w*|get_device_module|AcceleratorError|OutOfMemoryError|ThroughputBenchmark|profiler_\w+"),
    ("several machines or devices", r"is_distributed|RRefType|SyncBatchNorm|batch_norm_(gather_stats\w*|\w*elemt|"
     r"stats|update_stats|backward_reduce)"),
    (_JIT,
     r"torch: \w*Type|Script\w+|script|jit|\w*Module(Type)?\w*|CompilationUnit|Graph\w*|Block|Node|Use|Value|Code|"
     r"CallStack|Capsule|FunctionSchema|Argument\w*|CompleteArgumentSpec|AliasDb|\w+IODescriptor|IODescriptor|"
     r"OperatorInfo|FileCheck|ErrorReport|ExecutionPlan|Gradient|TracingState|Tag|import_ir_module\w*|parse_\w+|fork|"
     r"wait|Future|AwaitType|unify_type_list|merge_type_from_type_comment|JITException|LockingLogger|LoggerBase|"
     r"NoopLogger|AVG|SUM|AggregationType|Benchmark\w+|LiteScriptModule|Deserialization\w+|Serialization\w+|"
     r"PyTorchFile\w+|DeepCopyMemoTable|BufferDict|ParameterDict|ModuleDict|FatalError|freeze|StaticModule|"
     r"torch.nn.functional: (boolean_dispatch|BroadcastingList\d|DType)"),
    ("capture: `graphc.compile`, `graphc.cond`, `graphc.while_loop`; sizes are `graphc` Dims under a trace",
     r"torch: (compile|cond|while_loop)|Sym\w+|sym_(constrain|fresh)\w+|DispatchKey\w*|ExcludeDispatchKeyGuard"),
    ("how PyTorch dispatches on subclasses of Tensor", r"DisableTorchFunction\w*|\w*has_torch_function\w*|"
     r"handle_torch_function|as_subclass"),
    ("swapping tensors: gradients have the dtype of their tensors, and parameters are copied into",
     r"torch.Tensor: (grad_dtype|module_load)"),
    (_MEMORY, r"share_memory_|is_shared|from_file|prepare_multiprocessing_environment"),
    ("typed storages, deprecated for `UntypedStorage`",
     r"\w*Storage|StorageBase|torch: is_storage|storage_type"),
    ("text of PyTorch's documentation", r"\w*(common_args|common_notes|_notes|multi_dim_common|factory_common_args)|"
     r"GRID_SAMPLE_\w+"),
    ("a name that the module imports for itself",
     r"TYPE_CHECKING|Callable|Optional|torch.nn.functional: Tensor|classproperty|factory_kwargs|PRIVATE_OPS|"
     r"USE_\w+|assert_int_or_pair|legacy_contiguous_format|get_file_path"),
    ("how PyTorch was built, and its processes", r"has_(lapack|mkl|openmp|spectral)|compiled_with_cxx11_abi|"
     r"init_num_threads|thread_safe_generator"),
    ("masked tensors, a prototype in PyTorch: the functions of `torch.masked` take `mask=`",
     r"MaskedTensor|masked_tensor|is_masked_tensor|as_masked_tensor"),
    ("kernels, with what their gradients need as results, of operators that have a public form",
     r"native_\w+|torch: embedding_bag"),
    ("without a word in PyTorch's documentation", r"(torch|torch.Tensor): index|hash_tensor|binomial|segment_reduce|"
     r"set_anomaly_enabled|swap_in_optimizer_params_and_state"),
    ("removed or deprecated in PyTorch itself",
     r"Container|torch.Tensor: (name|volatile|reinforce|resize(_as)?)|to_dlpack"),
    ("how PyTorch cuts the loss into pieces", r"LinearCrossEntropyOptions"),
)  # fmt: skip


def _object(root: ModuleType, place: str) -> Any:
    """torch.nn.functional of PyTorch or eager."""
    found: Any = root
    for part in place.split(".")[1:]:
        if isinstance(found, ModuleType) and not hasattr(found, part):
            found = importlib.import_module(f"{found.__name__}.{part}")
        else:
            found = getattr(found, part)
    return found


def public_names(torch: ModuleType) -> dict[str, list[str]]:
    """The public names of each place, without modules."""
    found = {}
    for place in PLACES:
        owner = _object(torch, place)
        names = (name for name in dir(owner) if not name.startswith("_"))
        found[place] = [name for name in names if not isinstance(getattr(owner, name, None), ModuleType)]
    return found


@cache
def recorded() -> dict[str, list[str]]:
    """PyTorch's names by place, as recorded."""
    lines = (line.split(": ", 1) for line in FILE.read_text().splitlines())
    return {place: names.split() for place, names in lines}


def missing() -> Iterator[tuple[str, str]]:
    """(place, name) of what eager has not."""
    import eager

    for place, names in recorded().items():
        owner = _object(eager, place)
        yield from ((place, name) for name in names if not hasattr(owner, name))


def reason(place: str, name: str) -> str | None:
    """Why a name is missing."""
    for why, pattern in REASONS:
        if re.fullmatch(pattern, name) or re.fullmatch(pattern, f"{place}: {name}"):
            return why
    return None


def table() -> str:
    """The part of docs/ops.md about names."""
    absent: dict[str, list[str]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    for place, name in missing():
        counts[place] += 1
        absent[reason(place, name) or "?"].append(
            name if place == "torch" else f"{place.removeprefix('torch.')}.{name}"
        )
    lines = ["| place | names in PyTorch | here |", "|---|---|---|"]
    lines += [f"| `{place}` | {len(names)} | {len(names) - counts[place]} |" for place, names in recorded().items()]
    lines += ["", "| not here because of | names |", "|---|---|"]
    lines += [f"| {why} | {', '.join(f'`{n}`' for n in absent[why])} |" for why, _ in REASONS if absent[why]]
    return "\n".join(lines) + "\n"


def main() -> None:
    import torch
    import torch.masked

    FILE.write_text("".join(f"{place}: {' '.join(names)}\n" for place, names in public_names(torch).items()))


if __name__ == "__main__":
    main()
