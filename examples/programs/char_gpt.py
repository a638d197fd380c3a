"""A GPT that learns the letters of the license, as a PyTorch user writes it; it is saved, and goes on where it was.

    python -m graphc run examples/programs/char_gpt.py --out /tmp/gpt --steps 400 --sample 200
    python -m graphc run examples/programs/char_gpt.py --out /tmp/gpt --steps 800 --resume --compiled
    python -m graphc run examples/programs/char_gpt.py --out /tmp/gpt --steps 900 --resume --devices 8 --mesh 4x2
    python -m graphc launch --torch --processes 2 examples/programs/char_gpt.py --out /tmp/gpt --steps 999 --resume

Each step seeds what is drawn in it, its batch and its dropout, so a checkpoint need not say where the data are, and a
run goes on with other devices or processes. Each process draws masks of its own; everything else is the same.
"""

import argparse
import math
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--batch", type=int, default=8, help="samples of a step, of all processes together")
parser.add_argument("--dropout", type=float, default=0.1)
parser.add_argument("--out", help="folder of the checkpoint")
parser.add_argument("--every", type=int, default=10, help="steps from one checkpoint, and line of output, to the next")
parser.add_argument("--resume", action="store_true")
parser.add_argument("--compiled", action="store_true")
parser.add_argument("--devices", type=int, default=1, help="of this process: parts of the CPU")
parser.add_argument("--mesh", help="devices for parts of the batch x parts of the layers, as 4x2")
parser.add_argument(
    "--fsdp",
    action="store_true",
    help="hold parameters in parts over those, or over the processes, for parts of the batch",
)
parser.add_argument("--sample", type=int, default=0, help="letters to write at the end")
args = parser.parse_args()

LENGTH, SIZE, HEADS, LAYERS = 48, 48, 4, 2
text = (Path(__file__).resolve().parents[2] / "LICENSE").read_text()
letters = sorted(set(text))
tokens = torch.tensor([letters.index(letter) for letter in text])


def processes():
    """This process, and how many there are."""
    if "WORLD_SIZE" not in os.environ:
        return 0, 1
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size()


rank, world_size = processes()
torch.manual_seed(1337)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(SIZE), nn.LayerNorm(SIZE)
        self.qkv, self.out = nn.Linear(SIZE, 3 * SIZE, bias=False), nn.Linear(SIZE, SIZE, bias=False)
        self.mlp = nn.Sequential(
            nn.Linear(SIZE, 4 * SIZE), nn.GELU(), nn.Linear(4 * SIZE, SIZE), nn.Dropout(args.dropout)
        )

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (HEADS, 3, -1)).transpose(1, 2).unbind(-2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters, self.places = nn.Embedding(len(letters), SIZE), nn.Embedding(LENGTH, SIZE)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(SIZE), nn.Linear(SIZE, len(letters), bias=False)

    def forward(self, ids):
        x = self.letters(ids) + self.places(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def on_devices(model):
    """What `torch.compile` is told of a mesh of devices; the layers of `model` are split over its second axis."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    shape = tuple(int(n) for n in (args.mesh or f"{args.devices}x1").split("x"))
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("data", "model"))
    plan = {"qkv": ColwiseParallel(), "out": RowwiseParallel(), "mlp.0": ColwiseParallel(), "mlp.2": RowwiseParallel()}
    if shape[1] > 1:
        for block in model.blocks:
            parallelize_module(block, mesh["model"], plan)
    if args.fsdp:
        fully_shard(model, mesh=mesh["data"])
    return {"mesh": mesh, "in_shardings": [Shard(0), Replicate()]}


model = GPT()
if args.devices > 1:
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={args.devices}"
    options = on_devices(model)
if world_size > 1 and args.fsdp:
    from torch.distributed.fsdp import fully_shard

    fully_shard(model)
elif world_size > 1:
    model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda step: min((step + 1) / 10, 0.1 + 0.9 * math.exp(-step / 300))
)


class Run:
    """What is saved and loaded."""

    step = 0

    def state_dict(self):
        parameters, moments = get_state_dict(model, optimizer)
        return {"model": parameters, "optimizer": moments, "schedule": schedule.state_dict(), "step": self.step}

    def load_state_dict(self, state):
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        self.step = state["step"]


def batch_of(step):
    """The letters of a step, and those that follow them: this process's share."""
    generator = torch.Generator().manual_seed(step)
    starts = torch.randint(len(tokens) - LENGTH - 1, (args.batch,), generator=generator)[rank::world_size]
    rows = torch.stack([tokens[s : s + LENGTH + 1] for s in starts.tolist()])
    return rows[:, :-1], rows[:, 1:]


def train_step(x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss


def mean_over_processes(loss):
    """The loss of the whole batch."""
    if world_size > 1:
        dist.all_reduce(loss, dist.ReduceOp.AVG)
    return loss.item()


class Progress:
    """Prints the loss, and how fast it goes where errors are printed."""

    def __init__(self, step):
        self.losses, self.speeds = [], []
        self.start(step)

    def start(self, step):
        self.step, self.began = step, time.perf_counter()

    def show(self, step, loss):
        self.losses.append(loss)
        self.speeds.append((step - self.step) / (time.perf_counter() - self.began))
        if rank == 0:
            print(f"step {step}: loss {loss:.5f}")
            speed = self.speeds[-1] * args.batch * LENGTH
            print(f"{step} of {args.steps} steps, {speed:,.0f} letters a second", file=sys.stderr)


run = Run()
if args.resume:
    dcp.load({"run": run}, checkpoint_id=args.out)
if args.devices > 1:
    train_step = torch.compile(train_step, options=options)
elif args.compiled:
    train_step = torch.compile(train_step)
progress = Progress(run.step)
for step in range(run.step, args.steps):
    torch.manual_seed(step * world_size + rank)
    loss = train_step(*batch_of(step))
    schedule.step()
    run.step = step + 1
    if run.step % args.every == 0 or run.step == args.steps:
        progress.show(run.step, mean_over_processes(loss.detach()))
        if args.out:
            dcp.save({"run": run}, checkpoint_id=args.out)
        progress.start(run.step)

if args.sample and rank == 0:
    model.eval()
    ids = torch.zeros(1, 1, dtype=torch.int64)
    with torch.no_grad():
        for _ in range(args.sample):
            logits = model(ids[:, -LENGTH:])[0, -1]
            ids = torch.cat([ids, torch.multinomial(logits.softmax(0), 1)[None]], 1)
    print("".join(letters[k] for k in ids[0].tolist()))
if world_size > 1:
    dist.destroy_process_group()
