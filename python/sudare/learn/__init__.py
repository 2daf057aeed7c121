"""scikit-learn's estimators, fitted on encrypted tables."""

from ._axes import PCA, StandardScaler
from ._base import NotFittedError
from ._classes import GaussianNB, LinearDiscriminantAnalysis, NearestCentroid, QuadraticDiscriminantAnalysis
from ._linear import ElasticNet, Lasso, LinearRegression, Ridge
from ._logistic import LogisticRegression
from ._rows import Answer, Client, Plan, Rows

__all__ = [
    "PCA",
    "Answer",
    "Client",
    "ElasticNet",
    "GaussianNB",
    "Lasso",
    "LinearDiscriminantAnalysis",
    "LinearRegression",
    "LogisticRegression",
    "NearestCentroid",
    "NotFittedError",
    "Plan",
    "QuadraticDiscriminantAnalysis",
    "Ridge",
    "Rows",
    "StandardScaler",
]
