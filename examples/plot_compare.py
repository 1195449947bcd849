"""
Beside DIME and a fixed order
=============================

DIME is a published method that trains networks of its own: one that predicts and one that chooses.
askwise wraps the model that is there. Both are measured on the same held-out rows, under the same
budgets, and beside one order for all cases.
"""

# %%

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from askwise import DynamicFeatureSelector
from askwise.displays import BudgetDisplay
from askwise_bench.baselines import DIME

X, y = load_wine(return_X_y=True, as_frame=True)
X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
model = make_pipeline(StandardScaler(), MLPClassifier((50,), max_iter=300, random_state=0)).fit(X, y)
selector = DynamicFeatureSelector(model, epistemic=None, random_state=0).fit(X, y)

# %%
# The rival has the same interface. "static" and "random" are orders with the predictions of askwise.

rivals = {"DIME": DIME(random_state=0).fit(X, y), "static": "static", "random": "random"}

# %%
# One split of one table says little about who wins: the spread over splits and tables is under "How
# it compares". What can be seen is the shape: most is told by the first few features, and then
# nobody needs to be clever.

BudgetDisplay.from_selector(selector, X_new, y_new, range(1, 9), policies=rivals)
plt.show()
