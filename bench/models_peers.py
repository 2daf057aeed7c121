r"""Three models here and in packages from PyPI, timed and checked against their answers in the clear.

    for p in sudare tenseal concrete; do python -m venv target/peers/$p; done
    target/peers/sudare/bin/pip install dist/sudare-….whl
    target/peers/tenseal/bin/pip install numpy tenseal==0.3.18
    target/peers/concrete/bin/pip install concrete-ml==1.9.0
    python bench/models_peers.py target/peers/*/bin/python --commit HASH \
        --save bench/runs/models-peers-DATE.json

One thread each, a process for each model of each package, 128 bits of security. The models:

1. a logistic regression of 30 features;
2. a perceptron 784-128-10 with squares;
3. a convolution of 4 channels (7 x 7, stride 3) over 28 x 28 pixels, squares, 64 numbers, squares, 10: the
   network of TenSEAL's tutorial, which has one convolution at most.

Weights are random, of a size with which all values are about one; an example is random. A line has the
medians and all samples of what a user waits for, in ms of wall time and of the processor: parameters
(planning, compiling), keys, encryption, computation and decryption. It has the largest distance of an answer
from the model's own, and whether the largest score is the same. A model that takes longer than `--most`
seconds, or that a package refuses, has the reason in place of times.

Concrete ML rounds weights and values to integers, of 8 bits for the regression, and of 6 for the networks,
whose sums are rounded to 6 bits before each square, as its documentation advises. How far its answers are
from the model's own is in the line, and is no reason to refuse them.

What the file has of other packages and models stays.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import packages
from packages import STAGES, taken

# Seconds after which a model begins no other round.
ENOUGH = 20
MODELS = {
    "1": "logistic regression of 30 features",
    "2": "perceptron 784-128-10 with squares",
    "3": "convolution, 64 numbers, squares",
}
SIDE, KERNEL, STRIDE, CHANNELS = 28, 7, 3, 4
WINDOWS = (SIDE - KERNEL) // STRIDE + 1
Stages = dict[str, Callable[..., Any]]
# The stages of a model, its answers in the clear, and how far those of the package may be.
Task = tuple[Stages, Any, float]


def weights(model: str) -> tuple[list[tuple[Any, Any]], Any]:
    """Pairs of a matrix and what is added, a kernel first for the third model, and examples."""
    import numpy as np

    rng = np.random.default_rng(28)
    shapes = {
        "1": [(30, 1)],
        "2": [(784, 128), (128, 10)],
        "3": [(CHANNELS, KERNEL, KERNEL), (CHANNELS * WINDOWS**2, 64), (64, 10)],
    }[model]
    inputs = {"1": 30}.get(model, SIDE**2)
    pairs = []
    for shape in shapes:
        fan = KERNEL**2 if len(shape) > 2 else shape[0]
        added = shape[0] if len(shape) > 2 else shape[1]
        pairs.append((rng.normal(size=shape) / np.sqrt(fan), rng.normal(size=added) / 10))
    return pairs, rng.uniform(-1, 1, (256, inputs))


def windows(image: Any) -> Any:
    """The pixels under each place of the kernel, a row each."""
    import numpy as np

    square = image.reshape(SIDE, SIDE)
    places = [(STRIDE * i, STRIDE * j) for i in range(WINDOWS) for j in range(WINDOWS)]
    return np.array([square[i : i + KERNEL, j : j + KERNEL].ravel() for i, j in places])


def clear(model: str, x: Any) -> Any:
    """The scores of one example."""
    pairs, _ = weights(model)
    for k, (matrix, added) in enumerate(pairs):
        if matrix.ndim > 2:
            x = (matrix.reshape(CHANNELS, -1) @ windows(x).T + added[:, None]).ravel()
        else:
            x = x @ matrix + added
        if k < len(pairs) - 1:
            x = x * x
    return x


def here(model: str) -> Task:
    """A model in this package."""
    import numpy as np
    import sudare as sd

    pairs, examples = weights(model)
    layers = []
    for k, (matrix, added) in enumerate(pairs):
        if matrix.ndim > 2:
            # The convolution as a matrix, of which zeros cost nothing.
            ones = np.eye(SIDE**2)
            columns = [matrix.reshape(CHANNELS, -1) @ windows(one).T for one in ones]
            matrix, added = np.array([c.ravel() for c in columns]), np.repeat(added, WINDOWS**2)
        function = "square" if k < len(pairs) - 1 else "identity"
        layers.append(sd.Dense(matrix, added, function))

    def keys(compiled: Any) -> Any:
        client = sd.ModelClient(compiled.plan, threads=1)
        return client, client.server(compiled)

    stages = {
        "parameters": lambda: sd.compile(layers, example=examples, error=1e-2),
        "keys": keys,
        "encrypt": lambda _, keys: keys[0].encrypt(examples[:1]),
        "compute": lambda _, keys, x: keys[1].run(x),
        "decrypt": lambda _, keys, z: keys[0].decrypt(z)[0],
    }
    return stages, clear(model, examples[0]), 1e-2


def tenseal(model: str) -> Task:
    """The same in TenSEAL, by the parameters of its tutorials."""
    import numpy as np
    import tenseal as ts

    pairs, examples = weights(model)
    primes, scale = {
        "1": ([40, 30, 40], 30),
        "2": ([31, 26, 26, 26, 26, 31], 26),
        "3": ([31, 26, 26, 26, 26, 26, 26, 31], 26),
    }[model]

    def keys(_: Any) -> Any:
        context = ts.context(
            ts.SCHEME_TYPE.CKKS,
            poly_modulus_degree=8192,
            coeff_mod_bit_sizes=primes,
            n_threads=1,
        )
        context.global_scale = 2**scale
        context.generate_galois_keys()
        return context

    def encrypt(_: Any, context: Any) -> Any:
        if model == "3":
            image = examples[0].reshape(SIDE, SIDE).tolist()
            return ts.im2col_encoding(context, image, KERNEL, KERNEL, STRIDE)
        return ts.ckks_vector(context, examples[0].tolist())

    def compute(_: Any, context: Any, x: Any) -> Any:
        for k, (matrix, added) in enumerate(pairs):
            if matrix.ndim > 2:
                image, count = x
                channels = zip(matrix.tolist(), added.tolist(), strict=True)
                made = [image.conv2d_im2col(kernel, count) + one for kernel, one in channels]
                x = ts.CKKSVector.pack_vectors(made)
            else:
                x = x.mm(matrix.tolist()) + added.tolist()
            if k < len(pairs) - 1:
                x.square_()
        return x

    stages = {
        "parameters": lambda: None,
        "keys": keys,
        "encrypt": encrypt,
        "compute": compute,
        "decrypt": lambda _, __, z: np.array(z.decrypt()),
    }
    return stages, clear(model, examples[0]), 0.1


def concrete(model: str) -> Task:
    """The same in Concrete ML, which rounds it to integers."""
    import numpy as np

    pairs, examples = weights(model)

    def parameters() -> Any:
        if model == "1":
            from concrete.ml.sklearn import LogisticRegression
            from sklearn.linear_model import LogisticRegression as Given

            given = Given()
            given.coef_, given.intercept_ = pairs[0][0].T, pairs[0][1]
            given.classes_, given.n_features_in_, given.n_iter_ = np.arange(2), 30, np.array([1])
            made = LogisticRegression.from_sklearn_model(given, examples, n_bits=8)
            made.compile(examples)
            return made
        import torch
        from concrete.ml.torch.compile import compile_torch_model

        class Square(torch.nn.Module):
            def forward(self, x: Any) -> Any:
                return x * x

        layers: list[Any] = []
        for k, (matrix, added) in enumerate(pairs):
            if matrix.ndim > 2:
                layers += [torch.nn.Conv2d(1, CHANNELS, KERNEL, STRIDE)]
            else:
                layers += [torch.nn.Linear(*matrix.shape)]
            shape = layers[-1].weight.shape
            values = matrix if matrix.ndim > 2 else matrix.T
            layers[-1].weight.data = torch.tensor(values, dtype=torch.float32).reshape(shape)
            layers[-1].bias.data = torch.tensor(added, dtype=torch.float32)
            layers += [Square()] if k < len(pairs) - 1 else []
            layers += [torch.nn.Flatten()] if matrix.ndim > 2 else []
        network = torch.nn.Sequential(*layers)
        return compile_torch_model(network, given_to(examples), n_bits=6, rounding_threshold_bits=6)

    def given_to(x: Any) -> Any:
        return x.reshape(-1, 1, SIDE, SIDE) if model == "3" else x

    def circuit(made: Any) -> Any:
        return made.fhe_circuit_ if hasattr(made, "fhe_circuit_") else made.fhe_circuit

    def keys(made: Any) -> None:
        circuit(made).keygen(force=True)

    stages = {
        "parameters": parameters,
        "keys": keys,
        "encrypt": lambda made, _: circuit(made).encrypt(made.quantize_input(given_to(examples[:1]))),
        "compute": lambda made, _, x: circuit(made).run(x),
        "decrypt": lambda made, _, z: np.ravel(made.dequantize_output(circuit(made).decrypt(z))),
    }
    return stages, clear(model, examples[0]), float("inf")


PEERS = {
    "sudare": ("sudare", here),
    "tenseal": ("tenseal", tenseal),
    "concrete": ("concrete-ml", concrete),
}


def measure(name: str, model: str, rounds: int) -> dict[str, Any]:
    """The line of a model of one package; the answer of every round is checked."""
    import numpy as np

    stages, wanted, most = PEERS[name][1](model)
    clocks = {"wall_ms": time.perf_counter, "processor_ms": time.process_time}
    samples: dict[str, dict[str, list[float]]] = {clock: {stage: [] for stage in STAGES} for clock in clocks}
    start, furthest, same = time.perf_counter(), 0.0, True
    values: list[Any] = []
    for turn in range(rounds):
        if time.perf_counter() - start > ENOUGH:
            break
        # Parameters and keys are made once.
        values = values[:2]
        for stage in STAGES[len(values) :]:
            began = {clock: read() for clock, read in clocks.items()}
            values.append(stages[stage](*taken(values)))
            for clock, read in clocks.items():
                samples[clock][stage].append((read() - began[clock]) * 1e3)
        found = np.asarray(values[-1], dtype=float)
        if found.shape != wanted.shape:
            return {"refused": f"an answer of the shape {found.shape} in round {turn}"}
        furthest = max(furthest, float(np.abs(found - wanted).max()))
        same = same and bool(found.argmax() == wanted.argmax() and (found[0] > 0) == (wanted[0] > 0))
    if furthest > most:
        return {"refused": f"a wrong answer, {furthest:.2g} from the model's"}
    medians = {c: {s: round(statistics.median(x), 3) for s, x in of.items()} for c, of in samples.items()}
    about = {"distance": furthest, "scores": float(np.abs(wanted).max()), "same_label": same}
    return {"median": medians, "samples": samples, **about}


if __name__ == "__main__":
    packages.Comparison(
        script=__file__,
        doc=__doc__ or "",
        kind="model",
        works=MODELS,
        peers={module: package for module, (package, _) in PEERS.items()},
        measure=measure,
        medians=lambda line: line.get("median", {}).get("processor_ms"),
        rounds=3,
        most=300,
    ).run()
