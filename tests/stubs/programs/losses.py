"""Losses and activations, as functions and as layers."""

import eager as torch
import eager.nn.functional as F
from eager import nn

x, target = torch.randn(4, 5, requires_grad=True), torch.tensor([0, 1, 2, 3])
print(F.cross_entropy(x, target, label_smoothing=0.1, reduction="sum"), F.nll_loss(F.log_softmax(x, 1), target))
print(F.mse_loss(x, x), F.smooth_l1_loss(x, x, beta=0.5), F.huber_loss(x, x, delta=2.0), F.l1_loss(x, x))
print(
    F.binary_cross_entropy_with_logits(x, torch.ones(4, 5), pos_weight=torch.ones(5)), F.kl_div(x, x, log_target=True)
)
print(F.one_hot(target, num_classes=5), F.dropout(x, p=0.1, training=True), F.normalize(x, dim=1), F.elu(x, alpha=2.0))
print(F.cosine_similarity(x, x, dim=1), F.embedding(target, x), F.layer_norm(x, (5,)), F.linear(x, torch.ones(2, 5)))
layers = [nn.ReLU(), nn.LeakyReLU(0.1), nn.GELU("tanh"), nn.Softmax(dim=1), nn.PReLU(), nn.Hardtanh(-2.0, 2.0)]
for layer in layers:
    x = layer(x)
print(nn.BCELoss(reduction="none")(x, x), nn.TripletMarginLoss(margin=2.0)(x, x, x), nn.Upsample(scale_factor=2))
F.cross_entropy(x)  # error: reportCallIssue
F.cross_entropy(x, target, smoothing=0.1)  # error: reportCallIssue
F.dropout(x, p="0.1")  # error: reportArgumentType
F.cross_entropi(x, target)  # error: reportAttributeAccessIssue
nn.Softmax(dims=1)  # error: reportCallIssue
nn.LeakyRelu(0.1)  # error: reportAttributeAccessIssue
F.one_hot(target, 5).nosuch()  # error: reportAttributeAccessIssue
