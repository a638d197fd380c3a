"""Tables of what PyTorch has and this package has not: why, what to use instead, and the names of which it holds."""

from __future__ import annotations

# (why, what to use instead, patterns of whole names, anywhere or in "place: name"), the first that holds
PATTERNS: tuple[tuple[str, str, str], ...] = (
    (
        "forms of functions on sparse tensors that PyTorch itself does not document",
        "`torch.sparse`, and the methods of sparse tensors, `crow_indices()` and its like",
        r"(ccol_|col_|crow_|row_)?indices_copy|values_copy|saddmm|hsmm|sparse_support_notes",
    ),
    (
        "quantized and other packed numbers, which NumPy does not have",
        "`torch.round(x / scale)` with a float dtype simulates quantization",
        r"\w*(quant|fbgemm|choose_qparams)\w*|q_\w+|qscheme|q?u?int\d\w*|qu?int\w*|QU?Int\w+|bits\w*|"
        r"float[48]_\w+|per_(channel|tensor)_\w+|int_repr|bit|u?int[1-7]|complex32|chalf|ScalingType|"
        r"SwizzleType|scaled_\w*mm|grouped_mm",
    ),
    (
        "nested (jagged) tensors",
        "pad with `torch.nn.utils.rnn.pad_sequence`, and pass a mask",
        r"jagged|to_padded_tensor",
    ),
    (
        "libraries of one kind of device: what runs on devices is JAX's here",
        '`x.to("cuda")` puts a tensor on a GPU that JAX has, `graphc.compile(fn)` runs there',
        r"(cudnn|miopen|mkldnn)\w*|to_mkldnn|is_(vulkan|maia|mtia|ipu)\w*|ipu|mtia|\w*[Ss]tream\w*|Event|"
        r"DeviceObjType|is_cudnn\w*|get_device_module|ThroughputBenchmark|"
        r"profiler_\w+",
    ),
    (
        "remote calls, and parts of layers over several devices",
        "`torch.distributed`, `nn.SyncBatchNorm`, and `graphc.compile(fn, mesh=...)`",
        r"is_distributed|RRefType|batch_norm_(gather_stats\w*|\w*elemt|stats|update_stats|"
        r"backward_reduce)",
    ),
    (
        "TorchScript and its types; `graphc.trace` and `graphc.compile` capture programs",
        "`graphc.trace(fn, *args)` gives a graph, `graphc.compile(fn)` runs it",
        r"torch: \w*Type|Script\w+|script|jit|\w*Module(Type)?\w*|CompilationUnit|Graph\w*|Block|Node|Use|"
        r"Value|Code|CallStack|Capsule|FunctionSchema|Argument\w*|CompleteArgumentSpec|AliasDb|"
        r"\w+IODescriptor|IODescriptor|OperatorInfo|FileCheck|ErrorReport|ExecutionPlan|Gradient|"
        r"TracingState|Tag|import_ir_module\w*|parse_\w+|fork|wait|Future|AwaitType|unify_type_list|"
        r"merge_type_from_type_comment|JITException|LockingLogger|LoggerBase|NoopLogger|AVG|SUM|"
        r"AggregationType|Benchmark\w+|LiteScriptModule|Deserialization\w+|Serialization\w+|PyTorchFileWriter|"
        r"DeepCopyMemoTable|BufferDict|ParameterDict|ModuleDict|FatalError|freeze|StaticModule|"
        r"torch.nn.functional: (boolean_dispatch|BroadcastingList\d|DType)",
    ),
    (
        "capture: `graphc.compile`; sizes are `graphc` Dims under a trace",
        "`graphc.compile`, `torch.cond`, `torch.while_loop`",
        r"Sym\w+|sym_(constrain|fresh)\w+|DispatchKey\w*|"
        r"ExcludeDispatchKeyGuard",
    ),
    (
        "how PyTorch dispatches on subclasses of Tensor, which its modules import for themselves",
        "the names of `torch.overrides`",
        r"DisableTorchFunction|\w*has_torch_function\w*|handle_torch_function",
    ),
    (
        "swapping tensors: gradients have the dtype of their tensors, and parameters are copied into",
        "`load_state_dict`, or `parameter.data = ...`",
        r"torch.Tensor: (grad_dtype|module_load)",
    ),
    (
        "memory that processes share: each has its own here, and what goes from one to another is copied",
        "send `tensor.numpy()`",
        r"share_memory_|is_shared|from_file|prepare_multiprocessing_environment",
    ),
    (
        "typed storages, deprecated for `UntypedStorage`",
        "`tensor.untyped_storage()`",
        r"\w*Storage|StorageBase|torch: is_storage|storage_type",
    ),
    (
        "text of PyTorch's documentation",
        "",
        r"\w*(common_args|common_notes|_notes|multi_dim_common|factory_common_args)|GRID_SAMPLE_\w+",
    ),
    (
        "a name that the module imports for itself",
        "import it from where Python or NumPy has it",
        r"TYPE_CHECKING|Callable|Optional|torch.nn.functional: Tensor|classproperty|factory_kwargs|"
        r"PRIVATE_OPS|USE_\w+|assert_int_or_pair|legacy_contiguous_format|get_file_path",
    ),
    (
        "how PyTorch was built, and its processes",
        "",
        r"has_(lapack|mkl|openmp|spectral)|compiled_with_cxx11_abi|init_num_threads|thread_safe_generator",
    ),
    (
        "masked tensors, a prototype in PyTorch: the functions of `torch.masked` take `mask=`",
        "`torch.masked.sum(x, mask=mask)` and its kin",
        r"MaskedTensor|masked_tensor|is_masked_tensor|as_masked_tensor",
    ),
    (
        "kernels, with what their gradients need as results, of operators that have a public form",
        "the function of `torch.nn.functional` of that name",
        r"native_\w+|torch: embedding_bag",
    ),
    (
        "without a word in PyTorch's documentation",
        "",
        r"(torch|torch.Tensor): index|hash_tensor|binomial|segment_reduce|set_anomaly_enabled|"
        r"swap_in_optimizer_params_and_state",
    ),
    (
        "removed or deprecated in PyTorch itself",
        "",
        r"Container|torch.Tensor: (name|volatile|reinforce|resize(_as)?)|to_dlpack",
    ),
    (
        "how PyTorch cuts the loss into pieces",
        "`torch.nn.functional.linear_cross_entropy`",
        r"LinearCrossEntropyOptions",
    ),
)  # fmt: skip
_COMPILER = "`graphc.compile`, `graphc.trace` and `graphc.export` are the compiler here"
_DEVICES = "`x.to(device)` puts a tensor on a device that JAX has, `graphc.compile(fn)` runs where its tensors are"
# module of PyTorch -> what to use instead of it, or of what this package has not of it
MODULES: dict[str, str] = {
    **dict.fromkeys("_inductor _functorch _export export package".split(), _COMPILER),
    "onnx": "`graphc.export(graph)` writes a portable program, `graphc.stablehlo(graph)` its text",
    "distributed": "`torch.distributed` has process groups, collectives, messages and stores",
    **dict.fromkeys("quantization ao".split(), "`.to(dtype)`: dtypes are NumPy's, without quantized ones"),
    "nested": "pad with `torch.nn.utils.rnn.pad_sequence`, and pass a mask",
    "multiprocessing": "Python's `multiprocessing`, and `spawn`: what goes from one process to another is copied",
    "futures": "Python's `concurrent.futures`",
    **dict.fromkeys("classes".split(), "`graphc.ops.op(...)` declares an operation for both modes"),
    **dict.fromkeys("cuda mps xpu mtia cpu".split(), _DEVICES),
    "monitor": "`torch.utils.tensorboard.SummaryWriter` logs values",
    "contrib": "`torch.utils.tensorboard.SummaryWriter` logs values",
    "nn.attention": "`torch.nn.functional.scaled_dot_product_attention`",
    **dict.fromkeys(
        "nn.intrinsic nn.quantized nn.qat nn.quantizable".split(), "dtypes are NumPy's, without quantized ones"
    ),
    "nn.grad": "`torch.autograd.grad` of the convolution",
    "nn.modules": "the layers are in `torch.nn`, the base class is `torch.nn.Module`",
    "utils.cpp_extension": "`torch.autograd.Function` or `graphc.ops.op(...)` in Python",
    "utils.mobile_optimizer": _COMPILER,
    "utils.bottleneck": "`compare.bench` times both modes",
    "utils.collect_env": "`compare.report` lists the environment",
}
