"""Recurrent networks: a character model."""

import eager as torch
from eager import Tensor, nn


class CharModel(nn.Module):
    def __init__(self, tokens: int, hidden: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, hidden)
        self.lstm = nn.LSTM(hidden, hidden, num_layers=2, batch_first=True, dropout=0.1)
        self.out = nn.Linear(hidden, tokens)

    def forward(self, text: Tensor, state: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        found, state_after = self.lstm(self.embedding(text), state)
        return self.out(found), state_after


model = CharModel(27)
text = torch.randint(27, (4, 10))
logits, state = model(text)
logits, _ = model(text, state)
loss = nn.functional.cross_entropy(logits.reshape(-1, 27), text.view(-1))
loss.backward()
nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
packed = nn.utils.rnn.pack_padded_sequence(torch.zeros(4, 10, 3), torch.tensor([10, 8, 5, 2]), batch_first=True)
padded, lengths = nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
print(padded.shape, lengths.tolist())
cell = nn.GRUCell(3, 5)
h = torch.zeros(4, 5)
for t in range(10):
    h = cell(padded[:, t], h)
print(h.mean().item())
nn.LSTM(3)  # error: reportCallIssue
nn.LSTM(3, 5, layers=2)  # error: reportCallIssue
nn.utils.clip_grad_norm_(model.parameters())  # error: reportCallIssue
nn.Embedding(27, [3])  # error: reportArgumentType
h.hiden  # error: reportAttributeAccessIssue
