"""A GPT that learns the letters of the license, as a PyTorch user writes it; it is saved, and goes on where it was.

    python -m graphc run examples/programs/char_gpt.py --out /tmp/gpt --steps 400 --sample 200
    python -m graphc run examples/programs/char_gpt.py --out /tmp/gpt --steps 800 --resume --compiled

The batch of a step is drawn from a generator that the step seeds, so a checkpoint need not say where the data are.
"""

import argparse
import math
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--out", help="folder of the checkpoint")
parser.add_argument("--every", type=int, default=10, help="steps from one checkpoint, and line of output, to the next")
parser.add_argument("--resume", action="store_true")
parser.add_argument("--compiled", action="store_true")
parser.add_argument("--sample", type=int, default=0, help="letters to write at the end")
args = parser.parse_args()

LENGTH, SIZE, HEADS, LAYERS = 48, 48, 4, 2
text = (Path(__file__).resolve().parents[2] / "LICENSE").read_text()
letters = sorted(set(text))
tokens = torch.tensor([letters.index(letter) for letter in text])


def processes():
    """This process and how many there are: the one place that knows of several."""
    return 0, 1


rank, world_size = processes()
torch.manual_seed(1337 + rank)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(SIZE), nn.LayerNorm(SIZE)
        self.qkv, self.out = nn.Linear(SIZE, 3 * SIZE, bias=False), nn.Linear(SIZE, SIZE, bias=False)
        self.mlp = nn.Sequential(nn.Linear(SIZE, 4 * SIZE), nn.GELU(), nn.Linear(4 * SIZE, SIZE), nn.Dropout(0.1))

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
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


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda step: min((step + 1) / 10, 0.1 + 0.9 * math.exp(-step / 300))
)


class Run:
    """What is saved and loaded."""

    step = 0

    def state_dict(self):
        parameters, moments = get_state_dict(model, optimizer)
        random = {f"random{rank}": torch.get_rng_state()}
        return {
            "model": parameters,
            "optimizer": moments,
            "schedule": schedule.state_dict(),
            "step": self.step,
            **random,
        }

    def load_state_dict(self, state):
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        torch.set_rng_state(state[f"random{rank}"])
        self.step = state["step"]


def batch_of(step):
    """The letters of a step, and those that follow them: this process's share."""
    generator = torch.Generator().manual_seed(step)
    starts = torch.randint(len(tokens) - LENGTH - 1, (args.batch * world_size,), generator=generator)[rank::world_size]
    rows = torch.stack([tokens[s : s + LENGTH + 1] for s in starts.tolist()])
    return rows[:, :-1], rows[:, 1:]


def train_step(x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss


run = Run()
if args.resume:
    dcp.load({"run": run}, checkpoint_id=args.out)
if args.compiled:
    train_step = torch.compile(train_step)
for step in range(run.step, args.steps):
    loss = train_step(*batch_of(step))
    schedule.step()
    run.step = step + 1
    if run.step % args.every == 0 or run.step == args.steps:
        print(f"step {run.step}: loss {loss.item():.5f}")
        if args.out:
            dcp.save({"run": run}, checkpoint_id=args.out)

if args.sample:
    model.eval()
    ids = torch.zeros(1, 1, dtype=torch.int64)
    with torch.no_grad():
        for _ in range(args.sample):
            logits = model(ids[:, -LENGTH:])[0, -1]
            ids = torch.cat([ids, torch.multinomial(logits.softmax(0), 1)[None]], 1)
    print("".join(letters[k] for k in ids[0].tolist()))
