"""A network trained on handwritten digits reads an image that its server cannot see.

The images are 1,797 digits of 8 x 8 pixels (E. Alpaydin and C. Kaynak, UCI Machine Learning Repository,
1998, CC BY 4.0), as the file digits.csv.gz inside the Python package scikit-learn. Nothing of that package
is imported; only the file is read. The network, 64-48-32-10 with ReLU, is trained in plain NumPy.
"""

import gzip
import importlib.util
import io
import itertools
import resource
import sys
import time
from pathlib import Path

import numpy as np
import sudare as sd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SIZES = (64, 48, 32, 10)
TRAINED, CALIBRATED = 1200, 300


def digits() -> tuple[Floats, NDArray[np.int64]]:
    """Pixels from 0 to 1, and labels, in a fixed random order."""
    package = importlib.util.find_spec("sklearn")
    if package is None or not package.submodule_search_locations:
        sys.exit("the data come with scikit-learn: python -m pip install --no-deps scikit-learn")
    path = Path(package.submodule_search_locations[0]) / "datasets" / "data" / "digits.csv.gz"
    table = np.loadtxt(io.StringIO(gzip.decompress(path.read_bytes()).decode()), delimiter=",")
    table = np.random.default_rng(28).permutation(table)
    return table[:, :-1] / 16, table[:, -1].astype(np.int64)


def forward(layers: list[tuple[Floats, Floats]], x: Floats) -> list[Floats]:
    """What each layer gives, the input first."""
    values = [x]
    for k, (weights, bias) in enumerate(layers):
        y = values[-1] @ weights + bias
        values.append(y if k == len(layers) - 1 else np.maximum(y, 0))
    return values


def train(x: Floats, labels: NDArray[np.int64]) -> list[tuple[Floats, Floats]]:
    """Weights and biases, by stochastic gradient descent with momentum."""
    rng = np.random.default_rng(1)
    layers = [(rng.normal(size=(a, b)) * np.sqrt(2 / a), np.zeros(b)) for a, b in itertools.pairwise(SIZES)]
    speeds = [(np.zeros_like(w), np.zeros_like(b)) for w, b in layers]
    for epoch in range(60):
        rate = 0.1 * 0.5 * (1 + np.cos(np.pi * epoch / 60))
        for some in np.array_split(rng.permutation(len(x)), len(x) // 32):
            values = forward(layers, x[some])
            shares = np.exp(values[-1] - values[-1].max(axis=1, keepdims=True))
            slope = shares / shares.sum(axis=1, keepdims=True)
            slope[np.arange(len(some)), labels[some]] -= 1
            slope /= len(some)
            for k in range(len(layers) - 1, -1, -1):
                (weights, bias), (w_speed, b_speed) = layers[k], speeds[k]
                change = values[k].T @ slope + 1e-4 * weights
                w_speed, b_speed = 0.9 * w_speed - rate * change, 0.9 * b_speed - rate * slope.sum(axis=0)
                slope = (slope @ weights.T) * (values[k] > 0)
                layers[k], speeds[k] = (weights + w_speed, bias + b_speed), (w_speed, b_speed)
    return layers


def main() -> int:
    """Trains, compiles, encrypts one image, and compares."""
    x, labels = digits()
    began = time.perf_counter()
    layers = train(x[:TRAINED], labels[:TRAINED])
    unseen = forward(layers, x[TRAINED:])[-1].argmax(axis=1) == labels[TRAINED:]
    print(
        f"training    {time.perf_counter() - began:.1f} s; {100 * unseen.mean():.1f} % of unseen digits right"
    )

    names = ["relu"] * (len(layers) - 1) + ["identity"]
    network = [sd.Dense(w, b, f) for (w, b), f in zip(layers, names, strict=True)]
    began = time.perf_counter()
    model = sd.compile(network, example=x[:CALIBRATED], agreement=0.99)
    print(f"compiling   {time.perf_counter() - began:.1f} s\n\n{model}\n")

    client = sd.ModelClient(model.plan)
    server = client.server(model)
    image, truth = x[-1:], labels[-1]
    request = client.encrypt(image)
    began = time.perf_counter()
    answer = server.run(request)
    seconds = time.perf_counter() - began
    logits, clear = client.decrypt(answer)[0], forward(layers, image)[-1][0]
    print("digit   " + "".join(f"{d:9d}" for d in range(10)))
    print("clear   " + "".join(f"{v:9.3f}" for v in clear))
    print("secret  " + "".join(f"{v:9.3f}" for v in logits))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(f"\nread as {logits.argmax()}, which in the clear is {clear.argmax()}; the image is a {truth}")
    plan = model.plan
    print(f"time    {seconds:.2f} s; predicted for one thread {plan.seconds:.2f} s")
    print(f"keys    {server.key_bytes / 1e6:.0f} MB")
    print(f"request {len(request.to_bytes()) / 1e6:.2f} MB, answer {len(answer.to_bytes()) / 1e6:.2f} MB")
    print(f"memory  {peak:.0f} MB with client and training; the server's plan {plan.memory / 1e6:.0f} MB")
    noise = np.abs(logits - model.polynomial(image)[0]).max()
    if logits.argmax() != clear.argmax() or noise > model.plan.figures["error"]:
        print("an answer is wrong")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
