"""What no encrypted object does, because it would show or compare values."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ._errors import UnsupportedError

NO_VALUES = "its values are encrypted; decrypt it first, by decrypt(x) of its client or context"


class Opaque:
    """Something whose values nobody here can see: no array, number, truth value or comparison.

    What a class can compute without seeing values, it overrides.
    """

    # NumPy asks these before its own operators, so ndarray @ encrypted comes here too.
    __array_priority__ = 1000.0
    # And pandas, whose frames have 4000.
    __pandas_priority__ = 5000

    def _refuse(self, what: str) -> NoReturn:
        raise UnsupportedError(f"{type(self).__name__} {what}: {NO_VALUES}")

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise UnsupportedError(
            f"{type(self).__name__} is no array: {NO_VALUES}; several encrypted ones are put together by "
            "numpy.stack([x, y]) or numpy.concatenate, and a frame on the left of @ is frame.to_numpy() @ x"
        )

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's operators and element-wise functions of it."""
        self._refuse(f"is nothing for numpy.{ufunc.__name__}")

    def __array_function__(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """NumPy's other functions of it."""
        self._refuse(f"is nothing for numpy.{func.__name__}")

    def __bool__(self) -> NoReturn:
        self._refuse("is neither true nor false")

    def _no_number(self) -> NoReturn:
        self._refuse("is no plain number")

    __float__ = __int__ = __index__ = __complex__ = _no_number

    def __iter__(self) -> Any:
        self._refuse("cannot be iterated over")

    def __getitem__(self, index: Any) -> Any:
        self._refuse("has no elements to pick")

    def __contains__(self, item: Any) -> NoReturn:
        self._refuse("cannot be searched")

    def _no_order(self, other: Any) -> Any:
        self._refuse("cannot be compared")

    __lt__ = __le__ = __gt__ = __ge__ = _no_order

    def __eq__(self, other: object) -> Any:
        self._refuse("cannot be compared")

    def __ne__(self, other: object) -> Any:
        self._refuse("cannot be compared")

    # As an array: what does not compare is no key of a dictionary.
    __hash__ = None  # type: ignore[assignment]
