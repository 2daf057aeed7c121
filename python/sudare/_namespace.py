"""The Array API's namespace of encrypted arrays: NumPy's functions that take them.

Names are those of the standard, version 2024.12 (https://data-apis.org/array-api/2024.12).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import SimpleNamespace
from typing import Any

import numpy as np

from ._errors import UnsupportedError
from ._opaque import Opaque

__all__ = ["Namespace"]

VERSION = "2024.12"
#: What takes no array: constants, types and arrays that are plain.
PLAIN = """
e inf nan newaxis pi bool complex64 complex128 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32
uint64 arange empty eye full linspace ones zeros finfo iinfo isdtype from_dlpack
"""
#: Functions of arrays.
FUNCTIONS = """
abs acos acosh add all any argmax argmin argsort asarray asin asinh astype atan atan2 atanh bitwise_and
bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor broadcast_arrays
broadcast_to can_cast ceil clip concat conj copysign cos cosh count_nonzero cumulative_prod
cumulative_sum diff divide empty_like equal exp expand_dims expm1 flip floor floor_divide full_like
greater greater_equal hypot imag isfinite isin isinf isnan less less_equal log log10 log1p log2 logaddexp
logical_and logical_not logical_or logical_xor matmul matrix_transpose max maximum mean meshgrid min
minimum moveaxis multiply negative nextafter nonzero not_equal ones_like permute_dims positive pow prod
real reciprocal remainder repeat reshape result_type roll round searchsorted sign signbit sin sinh sort
sqrt square squeeze stack std subtract sum take take_along_axis tan tanh tensordot tile tril triu trunc
unique_all unique_counts unique_inverse unique_values unstack var vecdot where zeros_like
"""
LINALG = """
cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank
matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm
"""
#: Fourier transforms have none.
FFT = """
fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift
"""


class Namespace(SimpleNamespace):
    """Functions of the Array API that take encrypted arrays of a kind, with NumPy's own for what is plain.

    `left_out` has the names of the standard that are not here, each with what to write instead.
    """

    __array_api_version__ = VERSION

    def __init__(self, known: Collection[str], refusal: Callable[[str], UnsupportedError]) -> None:
        super().__init__(**{name: vars(np)[name] for name in PLAIN.split() if name in vars(np)})
        old = f"NumPy {np.__version__} does not have it; write it by what is here, or install numpy>=2.1"
        self.left_out = {name: old for name in PLAIN.split() if name not in vars(np)}
        self.linalg = SimpleNamespace()
        for place, module, names in ((self, np, FUNCTIONS), (self.linalg, np.linalg, LINALG)):
            for name in names.split():
                function = vars(module).get(name)
                if function is not None and function.__name__ in known:
                    setattr(place, name, function)
                else:
                    reason = old if function is None else str(refusal(function.__name__))
                    self.left_out[name if place is self else f"linalg.{name}"] = reason
        self.left_out |= {f"fft.{name}": str(refusal(f"fft.{name}")) for name in FFT.split()}
        self.left_out.pop("asarray", None)

    @staticmethod
    def asarray(x: Any, /, **settings: Any) -> Any:
        """An encrypted array as it is; anything else as NumPy's array.

        Raises `UnsupportedError` where an encrypted array is to be another.
        """
        if not isinstance(x, Opaque):
            return np.asarray(x, **settings)
        if settings.get("dtype") not in (None, getattr(x, "dtype", None)) or settings.get("copy"):
            raise UnsupportedError(
                "an encrypted array is not made of another; write x.astype(dtype) for integers, or x.copy()"
            )
        return x

    def __repr__(self) -> str:
        return f"<sudare array namespace {VERSION}, {len(self.left_out)} names left out>"


def checked(version: str | None) -> None:
    """Refuses another version of the standard than those that NumPy knows."""
    if version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise UnsupportedError(f"this is the Array API of {VERSION}, not {version}; leave api_version= out")
