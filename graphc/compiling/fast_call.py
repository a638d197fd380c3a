"""The shortest way from a call to its program: generated code for calls with plain tensors, as the latest one was.

`Signatures.of`, `Specialization.holds` and `Runner` are right for any call, and take longer than XLA for a small
program. The code made here asks what they ask, of this one signature; a call that it does not fit goes the long way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager.core.autocast import autocast_state
from eager.core.interpreter import IMMEDIATE, current_interpreter
from eager.core.parameter import Parameter
from eager.core.state import grad_enabled as grad_mode
from eager.core.state import made_in_inference
from eager.core.tensor import Tensor
from graphc.capture.generated import indented
from graphc.capture.sources import Captured
from graphc.compiling.disable import switch
from graphc.compiling.guards import KNOWN
from graphc.compiling.in_place import ReadInPlace
from graphc.compiling.signature import Call, Located
from graphc.compiling.specializations import Specialization
from graphc.execution.call_code import CallCode
from graphc.execution.runner import CheckFailed, OtherPath

MISS: Any = object()  # the call is another one than that which the code was made for
MOST = 8  # tensors: with more, finding the same tensor twice takes a set

FastCall = Callable[[Any, tuple[Any, ...]], Any]


def fast_call(made: Specialization, call: Call) -> FastCall | None:
    """f(compiled, args): what `compiled` returns by this program, for arguments like those of `call`; MISS for others.

    None for named arguments, and for those that are not all different plain tensors.
    """
    args = call.args
    grad, _, outside_inference, autocast, *described = made.signature  # the guards ask for the default dtype
    plain = not call.kwargs and all(map(_plain, args)) and len(described) == 4 * len(args)
    if not outside_inference or not plain or len(args) > MOST:
        return None
    names = [f"t{k}" for k in range(len(args))]
    tensors = f"[{', '.join(names)}]"
    runner = made.runner
    code = CallCode(runner.plan, runner.services, loaded=True)
    scope: dict[str, Any] = {
        "MISS": MISS, "interpreter": current_interpreter, "immediate": IMMEDIATE, "inference": made_in_inference,
        "grad_mode": grad_mode, "autocast": autocast_state, "autocast_before": autocast, "switch": switch,
        "made": made, "Call": Call, "signature": made.signature,
        "refused": (OtherPath, CheckFailed), **KNOWN,
    }  # fmt: skip
    head = [
        " # arguments",
        " if (interpreter() is not immediate or switch.off or inference() is not None"
        f" or grad_mode() is not {grad} or autocast() is not autocast_before or len(args) != {len(args)}): return MISS",
        *code.arrays.head,
    ]
    if made.choice is not None:
        scope["choice"] = made.choice
        head.append(" if made.calls >= choice.again: return MISS")
    if args:
        head.append(f" {', '.join(names)}{',' if len(names) == 1 else ''} = args")
    in_place = runner.forward.on_default_device and not runner.plan.live
    for k, name in enumerate(names):
        scope[f"class{k}"], scope[f"shape{k}"], scope[f"dtype{k}"], constant = described[4 * k : 4 * k + 4]
        scope[f"place{k}"] = ReadInPlace()
        if isinstance(located := scope[f"dtype{k}"], Located):
            scope[f"dtype{k}"], scope[f"where{k}"] = located
        elif runner.where is not None:
            return None
        head += code.arrays.argument(k, name, constant, in_place)
        head.append(f" if {name}.__dict__: return MISS")  # attributes, which a program may be for
    same = [f"{a} is {b}" for i, a in enumerate(names) for b in names[:i]]
    if same:
        head.append(f" if {' or '.join(same)}: return MISS")
    arrays = {
        id(s.tensor): code.array(k, s) for k, s in enumerate(runner.plan.program.sources) if isinstance(s, Captured)
    }
    unsealed, on_host = runner.services.unsealed, runner.forward.on_host
    body = made.guards.lines(
        code.names, "return MISS", tensors, "t{}", arrays, unsealed, in_place, on_host, runner.packs
    )
    body += [" made.calls += 1", " drawn = None", *code.lines("(args, {})")]
    if runner.stops:
        body = [
            " try:", *indented(body),
            " except refused as error: stopped = error",
        ]  # fmt: skip
    if made.writes:
        body = [
            " taken = []",
            " try:",
            "  taken.extend(map(compiled._writing.acquire, (False,)))",  # known at once to have been taken
            "  if not taken[0]: return MISS",
            *indented(body),
            " finally:",
            "  if taken and taken[0]: compiled._writing.release()",
        ]
    if runner.stops:
        body.append(f" return compiled._otherwise(stopped, made, Call(signature, {tensors}, args, {{}}))")
    return code.bind("fast_call", ["def fast_call(compiled, args):", *head, *body], scope)


def _plain(a: Any) -> bool:
    return a.__class__ is Tensor or a.__class__ is Parameter
