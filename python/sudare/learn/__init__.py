"""scikit-learn's estimators, fitted on encrypted tables.

A plan says what rows and targets can be. Their owner encrypts both, a server multiplies them and reads
nothing, and the owner gets a fitted estimator with scikit-learn's attributes:

>>> import numpy as np
>>> from sudare import learn
>>> X, y = np.arange(12.0).reshape(6, 2) % 5, np.array([0, 1, 0, 1, 1, 0])
>>> plan = learn.NearestCentroid().plan(X.shape, max_abs=5, classes=[0, 1])
>>> client = learn.Client(plan)
>>> server = client.server()
>>> model = client.decrypt(learn.NearestCentroid().fit(client.encrypt(X, y)))
>>> model.centroids_.round(3)
array([[1.333, 0.667],
       [2.   , 3.   ]])

Nothing of scikit-learn is loaded; where it is there, its tools take these estimators as their own.
"""

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
