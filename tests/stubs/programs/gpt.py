"""A small transformer."""

import math

import eager as torch
import eager.nn as nn
from eager import Tensor
from eager.nn import functional as F


class Attention(nn.Module):
    mask: Tensor

    def __init__(self, width: int, heads: int, context: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.register_buffer("mask", torch.tril(torch.ones(context, context)).view(1, 1, context, context))

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.size()
        qkv: Tensor = self.qkv(x)
        q, k, v = qkv.split(c, dim=2)
        q = q.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        k = k.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        v = v.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        y = F.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).contiguous().view(b, t, c))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = Attention(width, 4, 16)
        self.mlp = nn.ModuleDict({"up": nn.Linear(width, 4 * width), "down": nn.Linear(4 * width, width)})

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm(x))
        return x + self.mlp["down"](F.gelu(self.mlp["up"](x)))


blocks = nn.ModuleList([Block(32) for _ in range(2)])
tokens = torch.arange(16).unsqueeze(0)
x: Tensor = nn.Embedding(100, 32)(tokens)
for block in blocks:
    x = block(x)
top, where = torch.topk(x, k=5, dim=-1)
draw = torch.multinomial(F.softmax(top[0], dim=-1), num_samples=1)
print(torch.cat((tokens.float(), draw.T), dim=1).shape, where.dtype)
attended = F.scaled_dot_product_attention(x, x, x, is_causal=True)
torch.cat(tokens, tokens)  # error: reportArgumentType
torch.tril(torch.ones(3, 3), diag=1)  # error: reportCallIssue
x.transpose(1)  # error: reportCallIssue
x.masked_fill(mask=x > 0)  # error: reportCallIssue
x.view("a")  # error: reportCallIssue, reportArgumentType
F.gelu(x, approximate=True)  # error: reportArgumentType
attended.foo()  # error: reportAttributeAccessIssue
