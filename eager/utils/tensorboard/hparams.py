"""The settings of a run as the three summaries that TensorBoard's HParams plugin reads."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.utils.tensorboard.protocol import EXTRA, FEATURE, message, module
from graphc.errors import require

PLUGIN = "hparams"


def _pack(value: Any, name: str) -> dict[str, Any]:
    """A setting as a field of the protocol's Value. ValueError for a type that it has not."""
    if isinstance(value, Tensor):
        value = value.item()
    if isinstance(value, bool):
        return {"bool_value": value, "type": "DATA_TYPE_BOOL"}
    if isinstance(value, (int, float)):
        return {"number_value": value, "type": "DATA_TYPE_FLOAT64"}
    if isinstance(value, str):
        return {"string_value": value, "type": "DATA_TYPE_STRING"}
    raise ValueError(f"value should be one of int, float, str, bool, or torch.Tensor (hparam '{name}')")


def hparams(settings: dict[str, Any], metrics: dict[str, Any], domains: dict[str, list[Any]] | None) -> list[Any]:
    """The experiment, the start and the end of a session with `settings`, judged by `metrics`.

    domains: the values that a setting may take. TypeError unless the arguments are dicts, ValueError for a setting that
    is no number, string or bool.
    """
    if not isinstance(settings, dict) or not isinstance(metrics, dict):
        raise TypeError("hparam_dict and metric_dict should be dictionary.")
    if not isinstance(domains or {}, dict):
        raise TypeError("hparam_domain_discrete should be a dictionary.")
    for name, allowed in (domains or {}).items():
        if name not in settings or not all(isinstance(value, type(settings[name])) for value in allowed):
            raise TypeError(f"hparam_domain_discrete[{name}] should be a list of values of hparam_dict[{name}]'s type")
    api, data = module("plugins.hparams.api_pb2"), module("plugins.hparams.plugin_data_pb2")
    value_of = require("google.protobuf.struct_pb2", FEATURE, EXTRA).Value
    start = data.SessionStartInfo()
    infos = []
    for name, setting in settings.items():
        if setting is None:
            continue
        fields = _pack(setting, name)
        kind = fields.pop("type")
        start.hparams[name].CopyFrom(value_of(**fields))
        info = api.HParamInfo(name=name, type=api.DataType.Value(kind))
        for allowed in (domains or {}).get(name, ()):
            info.domain_discrete.values.append(
                value_of(**{k: v for k, v in _pack(allowed, name).items() if k != "type"})
            )
        infos.append(info)
    judged = [api.MetricInfo(name=api.MetricName(tag=tag)) for tag in metrics]
    contents = {
        "_hparams_/experiment": data.HParamsPluginData(
            experiment=api.Experiment(hparam_infos=infos, metric_infos=judged), version=0
        ),
        "_hparams_/session_start_info": data.HParamsPluginData(session_start_info=start, version=0),
        "_hparams_/session_end_info": data.HParamsPluginData(
            session_end_info=data.SessionEndInfo(status=api.Status.Value("STATUS_SUCCESS")), version=0
        ),
    }
    return [_summary(tag, content) for tag, content in contents.items()]


def _summary(tag: str, content: Any) -> Any:
    summary, metadata = message("Summary"), message("SummaryMetadata")
    plugin = metadata.PluginData(plugin_name=PLUGIN, content=content.SerializeToString())
    return summary(value=[summary.Value(tag=tag, metadata=metadata(plugin_data=plugin))])
