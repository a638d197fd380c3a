"""A convolutional network."""

import eager as torch
import eager.nn.functional as F
from eager import Tensor, nn


class ConvNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, kernel_size=3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, (3, 3), stride=(1, 1), padding="same"),
        )
        self.head = nn.Linear(16 * 7 * 7, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.features(x)), 2)
        x = torch.flatten(x, 1)
        return F.log_softmax(self.head(x), dim=1)


net = ConvNet().eval()
images = torch.zeros(2, 1, 28, 28, dtype=torch.float32)
with torch.no_grad():
    scores = net(images)
values, indices = F.max_pool2d(images, 2, return_indices=True)
print(values.shape, indices.dtype)
pooled = F.avg_pool2d(images, kernel_size=2, stride=2)
print(F.interpolate(pooled, scale_factor=2.0, mode="nearest").shape[0])
print(F.pad(images, (1, 1, 1, 1), value=0.5).size(2) + 1)
nn.Conv2d(1, 8)  # error: reportCallIssue
nn.Conv2d(1, 8, kernel_size=3, pading=1)  # error: reportCallIssue
nn.Conv2d(1, 8, kernel_size=None)  # error: reportArgumentType
F.relu(images, dim=1)  # error: reportCallIssue
F.conv3x3(images)  # error: reportAttributeAccessIssue
bad: str = F.max_pool2d(images, 2)  # error: reportAssignmentType
nn.MaxPool2d("2")  # error: reportArgumentType
