"""Trees, forests, boosted trees: scikit-learn's by attributes, XGBoost's and LightGBM's by JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._errors import FormatError, InputError, UnsupportedError
from ._estimators import answers, steps_of
from ._scalers import raw_thresholds, scaled

#: A tree: of each node feature, threshold, left and right, and values; no children at a leaf.
Tree = tuple[
    NDArray[np.int64], NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]
]

#: Classes that one score tells apart.
_BINARY = 2
#: How far scores of several rows may be from those of trees and one constant: a part of them.
_CONSTANT = 1e-9


class Forest(NamedTuple):
    """Trees whose leaves are added to `base`, what labels are, and the classes that they name."""

    base: list[float]
    trees: list[Tree]
    label: str
    classes: NDArray[Any] | None
    #: Whether features are compared in single precision.
    single: bool = True


def read(model: Any, rows: NDArray[np.float64]) -> Forest | None:
    """The trees of a fitted estimator; none of an estimator without trees.

    `rows` are examples, by which the constant that boosted trees begin with is found. Scalers before the
    trees move their thresholds, and every decision stays.
    """
    *scalers, model = steps_of(model) or [None]
    forest = _of_estimator(model, lambda: scaled(scalers, rows))
    return _before(scalers, forest, rows.shape[1]) if forest is not None and scalers else forest


def _before(scalers: list[Any], forest: Forest, inputs: int) -> Forest:
    """The forest of raw rows that decides as a forest of scaled ones."""
    # Leaves have no feature.
    features, thresholds = (np.concatenate([tree[part] for tree in forest.trees]) for part in (0, 1))
    features = np.maximum(features, 0).astype(np.int64)
    raw, changes = raw_thresholds(scalers, features, thresholds, forest.single, inputs)
    ends = np.cumsum([len(tree[0]) for tree in forest.trees])[:-1]
    trees = [
        _decided(feature, moved, np.where(other, right, left), np.where(other, left, right), values)
        for (feature, _, left, right, values), moved, other in zip(
            forest.trees, np.split(raw, ends), np.split(changes, ends), strict=True
        )
    ]
    return forest._replace(trees=trees, single=False)


def _of_estimator(model: Any, rows: Callable[[], NDArray[np.float64]]) -> Forest | None:
    """The trees of an estimator; none of one without. `rows` gives the examples that it takes."""
    name, classes = type(model).__name__, getattr(model, "classes_", None)
    document = _document(model)
    if document is not None:
        return read_document(document, classes)
    if isinstance(classes, (list, tuple)):
        raise UnsupportedError(f"{name} is not compiled with several labels at once; fit one for each label")
    if getattr(model, "tree_", None) is not None:
        trees = [model.tree_]
    elif getattr(model, "estimators_", None) is not None:
        members = np.asarray(model.estimators_, dtype=object)
        if not members.size or not all(hasattr(tree, "tree_") for tree in members.ravel()):
            return None
        if members.ndim == _BINARY:
            return _boosted(model, members, classes, rows())
        if not name.startswith(("RandomForest", "ExtraTrees")):
            raise UnsupportedError(f"{name} is not compiled; of forests, RandomForest… and ExtraTrees… are")
        trees = [tree.tree_ for tree in members]
    elif name.startswith("HistGradientBoosting") and hasattr(model, "n_features_in_"):
        return _of_histograms(model, name, classes)
    else:
        return None
    if classes is not None and getattr(model, "n_outputs_", 1) > 1:
        raise UnsupportedError(f"{name} is not compiled with several labels at once; fit one for each label")
    made = [_tree(tree, shares=classes is not None, factor=1 / len(trees)) for tree in trees]
    outputs = made[0][4].shape[1]
    return Forest([0.0] * outputs, made, "numbers" if classes is None else "argmax", _names(classes))


def _names(classes: Any) -> NDArray[Any] | None:
    return None if classes is None else np.asarray(classes)


def _tree(tree: Any, *, shares: bool, factor: float) -> Tree:
    """A tree of scikit-learn; of a classifier, leaves are shares of classes."""
    values = np.asarray(tree.value, dtype=np.float64)
    values = values.reshape(len(values), -1)
    if shares:
        values = values / values.sum(axis=1, keepdims=True)
    left, right = (np.asarray(side, dtype=np.int64) for side in (tree.children_left, tree.children_right))
    feature = np.asarray(tree.feature, dtype=np.int64)
    threshold = np.asarray(tree.threshold, dtype=np.float64)
    lengths = {len(part) for part in (left, right, feature, threshold, values)}
    if len(lengths) != 1:
        raise InputError("a tree has arrays of different lengths; fit the model again")
    return _decided(feature, threshold, left, right, np.ascontiguousarray(values * factor))


def _decided(
    feature: NDArray[np.int64],
    threshold: NDArray[np.float64],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    values: NDArray[np.float64],
) -> Tree:
    """A tree with finite thresholds. An infinite one takes all rows, which are finite, to one side."""
    never = threshold == -np.inf
    left, right = np.where(never, right, left), np.where(never, left, right)
    largest = np.finfo(np.float64).max
    return feature, np.where(np.isinf(threshold), largest, threshold), left, right, values


def _placed(values: NDArray[np.float64], output: int, outputs: int) -> NDArray[np.float64]:
    """Values of nodes that add to one of some outputs."""
    placed = np.zeros((len(values), outputs))
    placed[:, output] = values
    return placed


def _boosted(model: Any, members: Any, classes: Any, rows: NDArray[np.float64]) -> Forest:
    """Trees that are summed, each for one score."""
    name, outputs = type(model).__name__, members.shape[1]
    if not hasattr(model, "learning_rate"):
        raise UnsupportedError(
            f"{name} is not compiled; of ensembles with a table of trees, gradient boosting is"
        )
    trees: list[Tree] = []
    for stage in members:
        for output, member in enumerate(stage):
            *shape, values = _tree(member.tree_, shares=False, factor=float(model.learning_rate))
            trees.append((*shape, _placed(values[:, 0], output, outputs)))  # type: ignore[arg-type]
    # What they begin with has changed its form from release to release; their own scores tell.
    scores = answers(model, "predict" if classes is None else "decision_function", rows)
    rest = scores.reshape(len(rows), -1) - sum(_leaves(tree, rows) for tree in trees)
    base = rest.mean(axis=0)
    if np.abs(rest - base).max() > _CONSTANT * max(1.0, float(np.abs(scores).max())):
        raise UnsupportedError(
            f"{name} that begins with another estimator (init=) is not compiled; fit it without"
        )
    return Forest([float(b) for b in base], trees, _label(classes, outputs), _names(classes))


def _label(classes: Any, outputs: int) -> str:
    return "numbers" if classes is None else "sign" if outputs == 1 else "argmax"


def _of_histograms(model: Any, name: str, classes: Any) -> Forest:
    """Boosted trees of histograms, in private attributes: x ≤ threshold is compared in double precision."""
    try:
        base = np.ravel(model._baseline_prediction).astype(np.float64)
        stages = [[member.nodes for member in stage] for stage in model._predictors]
        trees = [
            _of_nodes(nodes, output, len(base)) for stage in stages for output, nodes in enumerate(stage)
        ]
        categories = any(nodes["is_categorical"].any() for stage in stages for nodes in stage)
        # Features by categories come first then.
        categories |= model.is_categorical_ is not None
        link = type(model._loss.link).__name__
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise UnsupportedError(
            f"{name} of this release of scikit-learn has its trees in other attributes than that of 1.9 "
            f"({error}); use that release, or GradientBoosting"
        ) from None
    if categories:
        raise UnsupportedError(
            f"{name} with features by categories is not compiled; fit it on pandas.get_dummies(frame) with "
            "categorical_features=None"
        )
    if classes is None and link != "IdentityLink":
        raise UnsupportedError(
            f"{name} with loss={model.loss!r} answers by a function of its trees' sum, which is not "
            "compiled; fit the logarithms of the targets with loss='squared_error', and take np.exp after "
            "decryption"
        )
    return Forest(base.tolist(), trees, _label(classes, len(base)), _names(classes), single=False)


def _of_nodes(nodes: Any, output: int, outputs: int) -> Tree:
    inner = nodes["is_leaf"] == 0
    left, right = (np.where(inner, nodes[side].astype(np.int64), -1) for side in ("left", "right"))
    feature, threshold = nodes["feature_idx"].astype(np.int64), nodes["num_threshold"].astype(np.float64)
    return _decided(feature, threshold, left, right, _placed(nodes["value"], output, outputs))


def _leaves(tree: Tree, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values of the leaves that rows reach."""
    feature, threshold, left, right, values = tree
    rows = rows.astype(np.float32).astype(np.float64)
    at = np.zeros(len(rows), dtype=np.int64)
    while (inner := left[at] >= 0).any():
        goes = rows[np.arange(len(rows)), feature[at]] <= threshold[at]
        at = np.where(inner, np.where(goes, left[at], right[at]), at)
    return values[at]


def _document(model: Any) -> Any:
    """The JSON of a booster of XGBoost or LightGBM, or of an estimator that has one; none of others."""
    if hasattr(model, "get_booster"):
        if model.missing is not None and not np.isnan(model.missing):
            raise UnsupportedError(
                "XGBoost with another missing= than NaN is not compiled; replace such numbers before the fit"
            )
        booster, best = model.get_booster(), getattr(model, "best_iteration", None)
        model = booster if best is None else booster[: best + 1]
    elif hasattr(model, "booster_"):
        model = model.booster_
    if hasattr(model, "save_raw"):
        return json.loads(bytes(model.save_raw("json")))
    return model.dump_model() if hasattr(model, "dump_model") else None


def read_text(text: bytes) -> Forest:
    """The trees of a JSON file, as `read_document`."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the model is not JSON: {error}") from None
    return read_document(document)


def read_document(document: Any, classes: Any = None) -> Forest:
    """The trees of a booster's JSON: XGBoost's `save_model("….json")`, or LightGBM's `dump_model()`.

    Raises `UnsupportedError` for boosters that are no sums of trees of numbers, `FormatError` for anything
    else.
    """
    try:
        if not isinstance(document, dict):
            raise FormatError(
                "this JSON is not a model of XGBoost or LightGBM; save it by save_model of XGBoost or "
                "dump_model of LightGBM"
            )
        if "learner" in document:
            return _of_xgboost(document["learner"], classes)
        if "tree_info" in document:
            return _of_lightgbm(document, classes)
    except (FormatError, UnsupportedError):
        raise
    except (KeyError, IndexError, TypeError, ValueError, RecursionError) as error:
        raise FormatError(
            f"this is not a model of XGBoost or LightGBM: {type(error).__name__}: {error}"
        ) from None
    raise FormatError(
        "this JSON is not a model of XGBoost or LightGBM; save it by save_model of XGBoost or dump_model "
        "of LightGBM"
    )


def _class_names(classes: Any, count: int) -> NDArray[Any]:
    return np.arange(max(count, _BINARY)) if classes is None else np.asarray(classes)


def _in_order(
    inner: Callable[[int], tuple[int, float, int, int] | None],
    leaf: Callable[[int], float],
    at: tuple[int, int],
) -> Tree:
    """A tree whose nodes come after their parents, whose leaves add to one of some outputs.

    `inner` has feature, threshold, left and right of a node, and nothing of a leaf.
    """
    output, outputs = at
    rows: list[tuple[int, float, int, int]] = []
    values: list[float] = []
    open_nodes, seen = [0], set[int]()
    while len(rows) < len(open_nodes):
        node = open_nodes[len(rows)]
        if node in seen:
            raise ValueError("two nodes of a tree lead to one node")
        seen.add(node)
        found = inner(node)
        if found is None:
            rows.append((-2, -2.0, -1, -1))
            values.append(leaf(node))
        else:
            feature, threshold, left, right = found
            rows.append((feature, threshold, len(open_nodes), len(open_nodes) + 1))
            values.append(0.0)
            open_nodes += [left, right]
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    features, lefts, rights = (columns[i].astype(np.int64) for i in (0, 2, 3))
    return features, columns[1].astype(np.float64), lefts, rights, _placed(np.array(values), output, outputs)


def _of_xgboost(learner: Any, classes: Any) -> Forest:
    """Boosted trees of XGBoost, which compares x < threshold in single precision."""
    objective, booster = learner["objective"]["name"], learner["gradient_booster"]
    about = learner["learner_model_param"]
    if booster["name"] != "gbtree" or int(about.get("num_target", "1")) > 1:
        raise UnsupportedError(
            f"XGBoost's booster {booster['name']!r} or several targets are not compiled; use gbtree and one "
            "target"
        )
    numbers = [float(x) for x in about["base_score"].strip("[]").split(",")]
    count = max(int(about["num_class"]), 1)
    if objective == "binary:logistic":
        label, base = "sign", [float(np.log(p / (1 - p))) for p in numbers]
    elif objective in ("multi:softmax", "multi:softprob"):
        label, base = "argmax", numbers
    elif objective in ("reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror", "rank:pairwise"):
        label, base = "numbers", numbers
    else:
        raise UnsupportedError(
            f"XGBoost's objective {objective!r}; binary:logistic, multi:softprob and reg:squarederror "
            "are compiled"
        )
    trees = []
    for tree, output in zip(booster["model"]["trees"], booster["model"]["tree_info"], strict=True):
        if any(tree.get("split_type", ())) or int(tree["tree_param"].get("size_leaf_vector", "1")) > 1:
            raise UnsupportedError(
                "XGBoost's splits by categories and leaves of several numbers are not compiled; encode "
                "categories as numbers"
            )
        below = np.nextafter(np.asarray(tree["split_conditions"], dtype=np.float32), np.float32(-np.inf))

        def inner(node: int, tree: Any = tree, below: Any = below) -> tuple[int, float, int, int] | None:
            left, right = tree["left_children"][node], tree["right_children"][node]
            if left < 0 and right < 0:
                return None
            if left < 0 or right < 0:
                raise ValueError("a node has one child")
            return tree["split_indices"][node], float(below[node]), left, right

        def leaf(node: int, tree: Any = tree) -> float:
            return float(np.float32(tree["split_conditions"][node]))

        trees.append(_in_order(inner, leaf, (int(output), count)))
    names = None if label == "numbers" else _class_names(classes, count)
    return Forest(np.broadcast_to(base, count).tolist(), trees, label, names)


def _of_lightgbm(document: Any, classes: Any) -> Forest:
    """Boosted trees of LightGBM, which compares x ≤ threshold in double precision."""
    objective, count = (
        str(document.get("objective", "")).split(" ")[0],
        int(document["num_tree_per_iteration"]),
    )
    labels = {"binary": "sign", "multiclass": "argmax", "regression": "numbers", "regression_l1": "numbers"}
    labels |= {
        "huber": "numbers",
        "fair": "numbers",
        "quantile": "numbers",
        "lambdarank": "numbers",
    }
    if objective not in labels or "sqrt" in str(document["objective"]):
        raise UnsupportedError(
            f"LightGBM's objective {document.get('objective')!r}; one of {', '.join(labels)} is compiled"
        )
    averaged = bool(document.get("average_output", False))
    all_trees = document["tree_info"]
    factor = count / len(all_trees) if averaged else 1.0
    trees = []
    for number, tree in enumerate(all_trees):
        nodes = [tree["tree_structure"]]

        def inner(node: int, nodes: Any = nodes) -> tuple[int, float, int, int] | None:
            about = nodes[node]
            if "left_child" not in about:
                return None
            if about["decision_type"] != "<=" or about["missing_type"] == "Zero" or "leaf_coeff" in about:
                raise UnsupportedError(
                    "LightGBM's splits by categories, and zeros as missing numbers (zero_as_missing), are "
                    "not compiled; fit without them"
                )
            nodes.extend([about["left_child"], about["right_child"]])
            return about["split_feature"], float(about["threshold"]), len(nodes) - 2, len(nodes) - 1

        def leaf(node: int, nodes: Any = nodes) -> float:
            if "leaf_coeff" in nodes[node]:
                raise UnsupportedError("LightGBM's linear trees are not compiled; fit with linear_tree=False")
            return factor * float(nodes[node]["leaf_value"])

        trees.append(_in_order(inner, leaf, (number % count, count)))
    label = labels[objective]
    names = None if label == "numbers" else _class_names(classes, count)
    return Forest([0.0] * count, trees, label, names, single=False)
