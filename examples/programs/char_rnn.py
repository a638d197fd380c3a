"""A character model: an LSTM learns a sentence, and continues it."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
text = "the quick brown fox jumps over the lazy dog "
letters = sorted(set(text))
codes = torch.tensor([letters.index(c) for c in text])


class CharRNN(nn.Module):
    def __init__(self, count, size=24):
        super().__init__()
        self.embedding = nn.Embedding(count, size)
        self.rnn = nn.LSTM(size, size, batch_first=True)
        self.head = nn.Linear(size, count)

    def forward(self, x, state=None):
        out, state = self.rnn(self.embedding(x), state)
        return self.head(out), state


model = CharRNN(len(letters))
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)


def step(x, y):
    optimizer.zero_grad()
    logits, _ = model(x)
    loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss


x, y = codes[:-1].unfold(0, 8, 5), codes[1:].unfold(0, 8, 5)
for k in range(12):
    loss = step(x, y)
    if k % 4 == 3:
        print(f"{k:3d} {loss.item():.4f}")

model.eval()
with torch.no_grad():
    letter, state, said = codes[:1].view(1, 1), None, ""
    for _ in range(6):
        logits, state = model(letter, state)
        letter = logits[:, -1:].argmax(-1)
        said += letters[letter.item()]
print(len(said), logits.softmax(-1).max().item())
