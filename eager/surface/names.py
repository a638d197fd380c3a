"""Where each public name comes from. A module is imported when one of its names is first used.

An entry is `name`, or `name=attribute` where the module calls it otherwise. Names of pointwise ops without parameters
are not here: they are installed from the op registry.
"""

from __future__ import annotations

# torch.<name>(input, ...) and input.<name>(...)
BOTH = {
    "functional.arithmetic": "add sub rsub div pow=power float_power clamp clamp_min clamp_max addcmul addcdiv lerp "
    "isclose allclose equal positive subtract=sub divide=div true_divide=div clip=clamp",
    "functional.reductions": "sum mean prod amax amin max min argmax argmin any all count_nonzero var std logsumexp "
    "softmax log_softmax cumsum cumprod aminmax nanmean nansum",
    "functional.shapes": "reshape flatten unflatten ravel squeeze unsqueeze permute transpose t movedim diagonal "
    "diag_embed diag trace tril triu broadcast_to swapaxes=transpose swapdims=transpose moveaxis=movedim",
    "functional.joining": "split chunk tensor_split unbind select narrow flip roll tile",
    "functional.gathering": "gather scatter_add take_along_dim index_put masked_fill masked_scatter "
    "masked_select nonzero",
    "functional.slices": "index_select index_add index_copy index_fill repeat_interleave",
    "functional.rearranging": "hsplit vsplit dsplit fliplr flipud rot90 diagflat take argwhere kron addbmm",
    "functional.strides": "as_strided",
    "functional.linear": "matmul mm mv dot bmm addmm addmv addr baddbmm outer inner ger=outer",
    "functional.casts": "clone detach is_floating_point is_complex numel",
    "functional.complexes": "adjoint angle conj conj_physical is_conj is_neg is_nonzero is_signed resolve_conj "
    "resolve_neg sgn",
    "functional.elementwise": "deg2rad fmax fmin frac frexp heaviside igamma igammac isneginf isposinf isreal ldexp "
    "logit mvlgamma nan_to_num rad2deg round",
    "functional.calculus": "diff",
    "functional.distances": "corrcoef cov cross dist renorm vdot",
    "functional.regions": "is_same_size as_strided_scatter diagonal_scatter narrow_copy select_scatter slice_scatter "
    "split_with_sizes slice_inverse unsafe_chunk unsafe_split unsafe_split_with_sizes",
    "functional.sorting": "argsort cummax cummin kthvalue logcumsumexp median mode msort nanmedian sort topk "
    "nanquantile quantile",
    "functional.counting": "bincount nonzero_static unique unique_consecutive",
    "functional.histograms": "histc histogram",
    "functional.scattering": "index_reduce put scatter scatter_reduce",
    "linalg.named": "cholesky cholesky_inverse cholesky_solve det eig geqrf inverse logdet lstsq lu lu_solve "
    "matrix_exp norm matrix_power orgqr ormqr pinverse qr slogdet solve svd symeig triangular_solve",
    "rng.functions": "multinomial",
    "signal.spectral": "stft istft",
    "sparse.reductions": "resize_as_sparse_ smm sspaddmm",
}
# torch._foreach_<name>([...], ...): functions that have a form in place, too, `torch._foreach_<name>_`; and others
FOREACH = (
    "abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min cos cosh div erf erfc exp expm1 floor frac lerp "
    "lgamma log log10 log1p log2 maximum minimum mul neg pow reciprocal round rsqrt sigmoid sign sin sinh sqrt sub tan "
    "tanh trunc"
).split()
FOREACH_IN_ONE_FORM = ("clone", "copy_", "max", "mm", "norm", "powsum", "zero_")
# torch.<name>(...) only
FUNCTIONS = {
    "_C": "DisableTorchFunctionSubclass PyTorchFileReader TensorType",
    "jit": "ScriptFunction ScriptModule",
    "_higher_order_ops.cond": "cond",
    "_higher_order_ops.while_loop": "while_loop",
    "functional.creation": "scalar_tensor zeros ones empty full zeros_like ones_like empty_like full_like eye "
    "empty_strided empty_permuted",
    "functional.buffers": "from_dlpack from_numpy frombuffer",
    "functional.data": "tensor as_tensor asarray",
    "functional.joining": "cat stack vstack hstack dstack concat=cat concatenate=cat row_stack=vstack",
    "functional.rearranging": "atleast_1d atleast_2d atleast_3d column_stack",
    "functional.reductions": "var_mean std_mean",
    "functional.shapes": "broadcast_tensors broadcast_shapes=common_shape",
    "functional.linear": "tensordot",
    "functional.einsums": "einsum",
    "functional.gathering": "fill where",
    "functional.casts": "is_tensor promote_types result_type can_cast set_default_dtype get_default_dtype",
    "functional.grids": "block_diag cartesian_prod combinations meshgrid tril_indices triu_indices vander",
    "functional.lines": "arange linspace logspace range",
    "functional.complexes": "complex imag polar real view_as_complex view_as_real",
    "functional.counting": "bucketize searchsorted",
    "surface.foreach": " ".join(
        f"_foreach_{name}" for name in (*FOREACH, *(f"{stem}_" for stem in FOREACH), *FOREACH_IN_ONE_FORM)
    ),
    "functional.segments": "segment_reduce",
    "functional.histograms": "histogramdd",
    "functional.elementwise": "isin polygamma",
    "functional.calculus": "cumulative_trapezoid gradient trapezoid trapz=trapezoid",
    "functional.distances": "cdist",
    "functional.quantization": "fake_quantize_per_channel_affine fake_quantize_per_tensor_affine",
    "nn.functions.operators": "adaptive_max_pool1d affine_grid_generator alpha_dropout alpha_dropout_ batch_norm "
    "binary_cross_entropy_with_logits celu constant_pad_nd convolution cosine_embedding_loss ctc_loss dropout dropout_ "
    "embedding embedding_renorm_ feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_ "
    "grid_sampler grid_sampler_2d grid_sampler_3d group_norm hinge_embedding_loss instance_norm kl_div layer_norm "
    "margin_ranking_loss max_pool1d max_pool2d max_pool3d norm_except_dim poisson_nll_loss "
    "rms_norm rrelu selu threshold triplet_margin_loss",
    "nn.modules.operators": "gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell",
    "nn.functional": "adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc "
    "max_pool1d_with_indices "
    "conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity hardshrink pairwise_distance pdist "
    "pixel_shuffle pixel_unshuffle prelu relu_ rrelu_ selu_ threshold_",
    "functional.regions": "unravel_index alias_copy as_strided_copy detach_copy diagonal_copy expand_copy "
    "permute_copy select_copy slice_copy split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy "
    "unbind_copy unfold_copy unsqueeze_copy view_as_complex_copy view_as_real_copy view_copy",
    "functional.symbolic": "SymBool SymFloat SymInt sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt "
    "sym_sum _assert_async _check _check_index _check_is_size _check_not_implemented _check_tensor_all "
    "_check_tensor_all_with _check_type _check_value _check_with",
    "surface.placement": "get_device",
    "nn.module": "typename",
    "linalg.lowrank": "lobpcg pca_lowrank svd_lowrank",
    "linalg.named": "chain_matmul frobenius_norm lu_unpack matrix_rank nuclear_norm",
    "random": "default_generator fork_rng get_rng_state initial_seed manual_seed seed set_rng_state",
    "rng.generator": "Generator",
    "rng.functions": "bernoulli normal poisson rand randint randn randperm",
    "rng.fills": "rand_like randint_like randn_like",
    "rng.rejection": "binomial _standard_gamma=standard_gamma _sample_dirichlet=dirichlet "
    "_standard_gamma_grad=standard_gamma_grad _dirichlet_grad=dirichlet_grad",
    "signal.spectral": "bartlett_window blackman_window hamming_window hann_window kaiser_window",
    "surface.printing": "set_printoptions get_printoptions",
    "core.limits": "finfo iinfo",
    "core.layouts": "channels_last channels_last_3d contiguous_format layout memory_format preserve_format sparse_bsc "
    "sparse_bsr sparse_coo sparse_csc sparse_csr strided",
    "sparse.construction": "sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor "
    "sparse_csc_tensor sparse_csr_tensor",
    "sparse.conversion": "_convert_indices_from_coo_to_csr=coo_to_csr _convert_indices_from_csr_to_coo=csr_to_coo",
    "sparse.products": "spmm=matmul dsmm=matmul",
    "sparse.reductions": "hspmm",
    "storage": "TypedStorage UntypedStorage",
    "surface.legacy_types": "BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor "
    "IntTensor LongTensor ShortTensor set_default_tensor_type",
    "serialization": "load save",
    "version": "__version__",
    "core.devices": "device",
    "amp.autocast_mode": "autocast",
    "amp.grad_scaler": "GradScaler",
    "amp.settings": "autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_cpu_dtype "
    "get_autocast_dtype get_autocast_gpu_dtype get_autocast_ipu_dtype get_autocast_xla_dtype is_autocast_cache_enabled "
    "is_autocast_cpu_enabled is_autocast_enabled is_autocast_ipu_enabled is_autocast_xla_enabled "
    "set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype "
    "set_autocast_enabled set_autocast_gpu_dtype set_autocast_ipu_dtype set_autocast_ipu_enabled "
    "set_autocast_xla_dtype set_autocast_xla_enabled",
    "surface.dispatcher": "ops",
    "autograd.anomaly_mode": "is_anomaly_check_nan_enabled is_anomaly_enabled",
    "func.mapping": "vmap",
    "compiler": "compile",
    "surface.errors": "AcceleratorError OutOfMemoryError _assert",
    "surface.runtime": "are_deterministic_algorithms_enabled get_default_device get_deterministic_debug_mode "
    "get_float32_matmul_precision get_num_interop_threads get_num_threads "
    "is_deterministic_algorithms_warn_only_enabled is_warn_always_enabled set_default_device "
    "set_deterministic_debug_mode "
    "set_float32_matmul_precision set_flush_denormal set_num_interop_threads set_num_threads "
    "set_warn_always use_deterministic_algorithms",
}
# methods that PyTorch also has as torch.<name>(input, ...)
IN_PLACE = frozenset(
    "is_inference "
    "abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_ asinh_ atan_ "
    "atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ detach_ erf_ erfc_ exp2_ exp_ "
    "expm1_ fill_ fix_ floor_ frac_ gcd_ i0_ index_put_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ "
    "negative_ rad2deg_ reciprocal_ resize_as_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ "
    "trunc_ xlogy_ zero_".split()
)
# input.<name>(...) only
METHODS = {
    "functional.casts": "bfloat16 bool byte cdouble cfloat char double float half int long short to type_as detach_ "
    "nelement=numel as_subclass",
    "functional.updates": "index_reduce_ put_ scatter_reduce_ "
    "add_ addcdiv_ addcmul_ addmm_ addmv_ addr_ baddbmm_ clamp_ clamp_max_ clamp_min_ clip_ "
    "copy_ cumprod_ cumsum_ div_ divide_ __idiv__=div_ fill_ fill_diagonal_ float_power_ index_add_ index_copy_ "
    "lerp_ masked_fill_ masked_scatter_ pow_ __ipow__=pow_ scatter_ scatter_add_ sub_ subtract_ "
    "tril_ triu_ true_divide_ zero_",
    "functional.elementwise": "polygamma=polygamma_method conj_physical_ deg2rad_ frac_ heaviside_ igamma_ igammac_ "
    "ldexp_ logit_ mvlgamma_ nan_to_num_ polygamma_ rad2deg_ round_ sgn_",
    "functional.index_updates": "index_fill_ index_put_",
    "functional.distances": "renorm_",
    "functional.rearranging": "addbmm_",
    "functional.regions": "sum_to_size",
    "functional.inplace_shapes": "as_strided_ resize_ resize_as_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_",
    "engine.hooks": "register_hook register_post_accumulate_grad_hook retain_grad",
    "functional.shapes": "view view_as reshape_as expand expand_as size dim ndimension=dim",
    "functional.strides": "contiguous is_contiguous stride storage_offset unfold",
    "functional.creation": "new_zeros new_ones new_empty new_full new_empty_strided",
    "functional.data": "new_tensor",
    "functional.joining": "repeat __iter__=iterate __reversed__=reversed_rows",
    "functional.gathering": "where=where_method",
    "functional.assignment": "__setitem__=setitem __delitem__=delitem",
    "functional.indexing": "__getitem__=getitem",
    "functional.arithmetic": "__pow__=power_operator __pos__=positive __invert__=invert __rtruediv__=reflected_div "
    "__rpow__=reflected_power __rmatmul__=reflected_matmul __rdiv__=old_reflected_div __div__=div",
    "rng.functions": "bernoulli",
    "rng.fills": "uniform_ normal_ bernoulli_ random_ exponential_ cauchy_ log_normal_ geometric_",
    "storage": "__deepcopy__=deepcopy __reduce__=reduced dim_order untyped_storage storage data_ptr is_set_to set_ "
    "apply_ map_ map2_ const_data_ptr=data_ptr",
    "surface.placement": "cpu cuda xpu get_device pin_memory is_pinned",
    "core.layouts": "element_size",
    "sparse.access": "indices values _indices _values _nnz=nnz crow_indices col_indices ccol_indices row_indices "
    "is_coalesced coalesce _coalesced_ sparse_dim dense_dim",
    "sparse.conversion": "to_dense to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc",
    "sparse.reductions": "sparse_mask sparse_resize_ sparse_resize_and_clear_",
    "nn.functions.activation": "hardshrink prelu",
    "surface.legacy_types": "new type=type_ __init__=construct",
    "surface.printing": "__repr__=tensor_text",
    "surface.html": "_repr_html_=tensor_html",
    "engine.backward": "backward=backward_of",
    "surface.interop": "__array_ufunc__ __array_function__ __array_wrap__",
    "functional.buffers": "__dlpack__=to_dlpack __dlpack_device__=dlpack_device",
    "core.views": "_is_view=is_view",
}
PROPERTIES = {
    "engine.grad_fn": "grad_fn",
    "functional.shapes": "T=reversed_dims mT=matrix_transpose",
    "functional.complexes": "real imag H=matrix_adjoint mH=adjoint",
    "core.layouts": "layout=layout_of is_sparse=is_coo is_sparse_csr=is_csr itemsize=element_size",
    "sparse.access": "nbytes",
    "engine.hooks": "retains_grad",
    "core.meta": "is_meta",
    "core.views": "_base=base_of",
    "surface.placement": "is_cpu is_cuda is_xla is_xpu",
}
# functions that get an `out` by being wrapped; those that are called most have one of their own
OUT = (
    "float_power clamp clamp_min clamp_max clip addcmul addcdiv lerp pow prod amax amin max min argmax argmin any all "
    "var std norm logsumexp softmax log_softmax cumsum cumprod diag tril triu gather scatter scatter_add "
    "take_along_dim index_select index_add index_copy masked_select mv dot bmm addmm addmv addr baddbmm outer ger "
    "inner tensordot vstack hstack dstack row_stack where deg2rad fmax fmin frac frexp heaviside igamma igammac isin "
    "isneginf isposinf ldexp logit mvlgamma nan_to_num polygamma rad2deg round diff cross renorm vdot narrow_copy "
    "diagonal_scatter select_scatter slice_scatter aminmax nanmean nansum addbmm angle column_stack complex "
    "conj_physical kron nonzero nonzero_static polar sgn take"
)
# pointwise ops of the registry under a second name
ALIASES = {
    "multiply": "mul", "negative": "neg", "absolute": "abs", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
    "arctan2": "atan2", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne",
    "fix": "trunc", "arccosh": "acosh", "arcsinh": "asinh", "arctanh": "atanh",
}  # fmt: skip
# what is the same of every tensor here
ALIKE = {
    **dict.fromkeys(
        "is_quantized is_mkldnn is_nested is_mps is_vulkan is_ipu is_hpu".split(), False,
    ),
    "__array_priority__": 1000,
}  # fmt: skip
# methods of PyTorch's Tensor that are missing here: `eager.core.missing` says why
MISSING_METHODS = (
    "chalf dequantize grad_dtype hash_tensor index int_repr ipu is_distributed is_maia is_mtia "
    "is_shared module_load mtia name q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale "
    "q_zero_point qscheme record_stream reinforce resize resize_as share_memory_ storage_type to_mkldnn "
    "to_padded_tensor volatile "
)
SUBMODULES = frozenset(
    "_C __config__ _dynamo _higher_order_ops _tensor_str _utils accelerator amp autograd backends compiler "
    "cpu cuda distributed distributions fft func futures fx hub jit library linalg masked mps multiprocessing "
    "nn onnx optim overrides profiler quasirandom random return_types serialization signal sparse special "
    "testing types utils version xpu"
    .split()
)  # fmt: skip
