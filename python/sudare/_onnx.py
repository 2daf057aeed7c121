"""ONNX files: a writer of networks for the reader, and constants that stand beside a file put into it.

Protobuf is a row of fields, each with its number: whole numbers, four bytes, or bytes of a length.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._errors import FormatError

#: The operator set that is written.
_OPSET = 24
_IR_VERSION = 10
_DOUBLE, _INT64 = 11, 7
#: Types of fields.
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
#: Numbers of fields: of a model, of a graph, of a constant.
_GRAPH, _CONSTANT, _RAW, _EXTERNAL, _LOCATION = 7, 5, 9, 13, 14
#: Bits of a byte of a whole number, what says that another byte follows, and the most bits that one has.
_SEVEN, _MORE, _MOST = 7, 128, 64


def _varint(value: int) -> bytes:
    value, out = value % (1 << _MOST), bytearray()
    while value >= _MORE:
        out.append(value % _MORE + _MORE)
        value >>= _SEVEN
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value)


def _bytes(field: int, value: bytes | str) -> bytes:
    value = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | _BYTES) + _varint(len(value)) + value


def _attribute(name: str, value: Any) -> bytes:
    """An attribute: a whole number, a number, a text, or whole numbers."""
    if isinstance(value, (bool, int)):
        kind, field = 2, _number(3, int(value))
    elif isinstance(value, float):
        kind, field = 1, _varint(2 << 3 | _FIXED32) + struct.pack("<f", value)
    elif isinstance(value, str):
        kind, field = 3, _bytes(4, value)
    else:
        kind, field = 7, b"".join(_number(8, int(x)) for x in value)
    return _bytes(1, name) + field + _number(20, kind)


class Graph:
    """A network in the making, with one input, `x`. Numbers keep their double precision."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape, self._nodes, self._constants = shape, list[bytes](), list[bytes]()

    def constant(self, values: ArrayLike) -> str:
        """A constant, and its name: whole numbers, which shapes and axes are, or doubles."""
        found = np.asarray(values)
        whole = found.dtype.kind in "iu"
        found = found.astype("<i8" if whole else "<f8")
        name = f"constant {len(self._constants)}"
        dims = b"".join(_number(1, d) for d in found.shape)
        kind = _number(2, _INT64 if whole else _DOUBLE)
        self._constants.append(dims + kind + _bytes(8, name) + _bytes(_RAW, found.tobytes()))
        return name

    def node(self, operator: str, *inputs: str, name: str = "", outputs: int = 1, **attributes: Any) -> str:
        """An operation of values by their names, and the name of its result, the first of its `outputs`."""
        made = f"value {len(self._nodes)}"
        results = [made, *(f"{made}, {k}" for k in range(1, outputs))]
        fields = [_bytes(1, value) for value in inputs] + [_bytes(2, result) for result in results]
        fields += [_bytes(3, name), _bytes(4, operator)]
        fields += [_bytes(5, _attribute(key, value)) for key, value in attributes.items()]
        self._nodes.append(b"".join(fields))
        return made

    def affine(self, value: str, weights: ArrayLike, bias: ArrayLike | None, name: str = "") -> str:
        """`value @ weights + bias`, or a product with each number for weights of one dimension."""
        operator = "Mul" if np.ndim(weights) == 1 else "MatMul"
        made = self.node(operator, value, self.constant(np.asarray(weights, dtype=np.float64)), name=name)
        if bias is None:
            return made
        return self.node("Add", made, self.constant(np.asarray(bias, dtype=np.float64)), name=name)

    def file(self, output: str) -> bytes:
        """The file of the network that gives `output`."""
        last = _bytes(1, _bytes(1, output) + _bytes(2, "output") + _bytes(4, "Identity"))
        dims = b"".join(_bytes(1, _number(1, d)) for d in self._shape)
        given = _bytes(2, _bytes(1, _number(1, _DOUBLE) + _bytes(2, dims)))
        nodes = b"".join(_bytes(1, node) for node in self._nodes)
        constants = b"".join(_bytes(_CONSTANT, constant) for constant in self._constants)
        ends = _bytes(11, _bytes(1, "x") + given) + _bytes(12, _bytes(1, "output"))
        graph = _bytes(_GRAPH, nodes + last + _bytes(2, "network") + constants + ends)
        return _number(1, _IR_VERSION) + graph + _bytes(8, _number(2, _OPSET))


def _fields(data: memoryview) -> Iterator[tuple[int, memoryview | int, memoryview]]:
    """The fields of a message: number, what is in it, and the whole field as it is written."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte % _MORE) << shift, shift + _SEVEN
            if byte < _MORE:
                return value
            if shift > _MOST:
                raise FormatError("a whole number of a file that is too long")

    while at < len(data):
        begin, key = at, varint()
        number, kind = key >> 3, key % 8
        if kind == _VARINT:
            inside: memoryview | int = varint()
        else:
            length = varint() if kind == _BYTES else {_FIXED64: 8, _FIXED32: 4}.get(kind, len(data))
            if length > len(data) - at:
                raise FormatError("a field of a file that is cut off")
            inside, at = data[at : at + length], at + length
        yield number, inside, data[begin:at]


def _beside(tensor: memoryview, folder: str) -> bytes | None:
    """A constant with its numbers, if they stand in a file beside; none if it has them."""
    kept, where = [], dict[str, str]()
    for number, inside, whole in _fields(tensor):
        if number == _EXTERNAL and isinstance(inside, memoryview):
            entry = {
                key: bytes(text).decode() for key, text, _ in _fields(inside) if not isinstance(text, int)
            }
            where[entry.get(1, "")] = entry.get(2, "")
        elif number != _LOCATION:
            kept.append(bytes(whole))
    if not where:
        return None
    name = where.get("location", "")
    # A name alone: a path might lead anywhere.
    if name in ("", ".", "..") or os.path.basename(name) != name or "\\" in name:
        raise FormatError(f"its constants are in {name!r}, which is no file of its own folder")
    path = os.path.join(folder, name)
    if os.path.islink(path):
        raise FormatError(f"its constants are in {name!r}, which is a link")
    offset, length = int(where.get("offset", "0")), int(where.get("length", "-1"))
    with open(path, "rb") as file:
        file.seek(offset)
        numbers = file.read(length)
    if length > len(numbers):
        raise FormatError(f"its constants are in {name!r}, which is cut off")
    return b"".join(kept) + _bytes(_RAW, numbers)


def with_constants(file: bytes, folder: str) -> bytes:
    """The file of a network with the constants that stand beside it, in files of its folder.

    Raises `FormatError` for a damaged one, and for constants elsewhere; `OSError` where they are missing.
    """
    try:
        return _with_constants(memoryview(file), folder)
    except FormatError:
        raise
    except (IndexError, ValueError) as error:
        raise FormatError(f"no ONNX file: {error}") from None


def _with_constants(file: memoryview, folder: str) -> bytes:
    out, changed = list[bytes](), False
    for number, graph, whole in _fields(file):
        if number != _GRAPH or isinstance(graph, int):
            out.append(bytes(whole))
            continue
        parts = list[bytes]()
        for field, inside, part in _fields(graph):
            tensor = _beside(inside, folder) if field == _CONSTANT and not isinstance(inside, int) else None
            parts.append(bytes(part) if tensor is None else _bytes(_CONSTANT, tensor))
            changed = changed or tensor is not None
        out.append(_bytes(_GRAPH, b"".join(parts)))
    return b"".join(out) if changed else bytes(file)
