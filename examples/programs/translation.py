"""A transformer from sequence to sequence, with masks of padding and of the future, and beam search."""

import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
PAD, START, WIDTH = 0, 1, 8


class Translator(nn.Module):
    def __init__(self, words=7, longest=10):
        super().__init__()
        self.words = nn.Embedding(words, WIDTH, padding_idx=PAD)
        self.transformer = nn.Transformer(WIDTH, 2, 1, 1, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(WIDTH, words)
        places = torch.zeros(longest, WIDTH)
        angle = torch.arange(longest).unsqueeze(1) * torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(1e4) / WIDTH))
        places[:, 0::2], places[:, 1::2] = torch.sin(angle), torch.cos(angle)
        self.register_buffer("places", places)

    def forward(self, source, target):
        hidden = source == PAD
        decoded = self.transformer(
            self.words(source) + self.places[: source.size(1)],
            self.words(target) + self.places[: target.size(1)],
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.size(1)),
            src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden,
            tgt_is_causal=True,
        )
        return self.head(decoded)


model = Translator()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
source = torch.tensor([[1, 2, 3, PAD], [4, 5, 6, 2]])
target = torch.tensor([[START, 3, 2, PAD], [START, 6, 5, 4]])


def step(source, target):
    optimizer.zero_grad()
    logits = model(source, target[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD, label_smoothing=0.1)
    loss.backward()
    size = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss, size


for _ in range(5):
    loss, size = step(source, target)
    print(f"loss {loss.item():.4f}, gradient {size.item():.4f}")

model.eval()
with torch.no_grad():
    beams = [([START], 0.0)]
    for _ in range(3):
        longer = []
        for words, score in beams:
            likely = model(source[1:], torch.tensor([words]))[0, -1].log_softmax(-1)
            for value, word in zip(*likely.topk(3), strict=True):
                longer.append(([*words, word.item()], score + value.item()))
        beams = sorted(longer, key=lambda beam: -beam[1])[:2]
for words, score in beams:
    print(words, f"{score:.3f}")
