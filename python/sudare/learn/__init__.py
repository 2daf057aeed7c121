"""scikit-learn's estimators, fitted on encrypted tables."""

from ._axes import PCA, StandardScaler
from ._base import NotFittedError
from ._classes import GaussianNB, LinearDiscriminantAnalysis, NearestCentroid, QuadraticDiscriminantAnalysis
from ._descent import GradientLogisticRegression
from ._kmeans import KMeans
from ._layout import Plan
from ._linear import ElasticNet, Lasso, LinearRegression, Ridge
from ._logistic import LogisticRegression
from ._owner import Client, PublicClient
from ._power import PowerPCA
from ._rows import Answer, Rows

__all__ = [
    "PCA",
    "Answer",
    "Client",
    "ElasticNet",
    "GaussianNB",
    "GradientLogisticRegression",
    "KMeans",
    "Lasso",
    "LinearDiscriminantAnalysis",
    "LinearRegression",
    "LogisticRegression",
    "NearestCentroid",
    "NotFittedError",
    "Plan",
    "PowerPCA",
    "PublicClient",
    "QuadraticDiscriminantAnalysis",
    "Ridge",
    "Rows",
    "StandardScaler",
]
