"""
A program that knows only MLflow
================================

A selector is saved as an MLflow model. Whoever loads it needs nothing of askwise's own interface: rows of which not
everything is known go in, and what to ask next, or what is predicted so far, comes out.
"""

# %%
# Saved as a folder without pickle. ``log_model`` does the same into a run, and registers it; see
# :doc:`/howto/mlflow`.

import tempfile

import matplotlib.pyplot as plt
import mlflow.pyfunc
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

from askwise import DynamicFeatureSelector
from askwise.integrations.mlflow import save_model

X, y = load_wine(return_X_y=True, as_frame=True)
model = RandomForestClassifier(50, random_state=0).fit(X[::2], y[::2])
selector = DynamicFeatureSelector(model, epistemic=None, random_state=0).fit(X[::2], y[::2])
folder = tempfile.TemporaryDirectory()
save_model(selector, f"{folder.name}/wine")

# %%
# The other program. Each turn it asks what to measure in each case, measures it, and predicts.

served = mlflow.pyfunc.load_model(f"{folder.name}/wine")
truth, labels = X[1::12].reset_index(drop=True), y[1::12].to_numpy()
known = pd.DataFrame(float("nan"), index=truth.index, columns=truth.columns)
shares = []
for _ in range(5):
    proba = served.predict(known).to_numpy()
    shares.append(proba[range(len(labels)), labels])
    for row, feature in enumerate(served.predict(known, params={"method": "suggest"})):
        known.loc[row, feature] = truth.loc[row, feature]

print("asked first:", sorted(known.columns[known.notna().any()]))

# %%
# The probability of the right class, case by case.

fig, ax = plt.subplots(figsize=(6, 3.5))
ax.plot(shares, color="tab:blue", alpha=0.4)
ax.plot([share.mean() for share in shares], color="black", label="mean")
ax.set(xlabel="features asked", ylabel="probability of the right class", xticks=range(5), ylim=(0, 1.02))
ax.legend(loc="lower right")
plt.tight_layout()
folder.cleanup()
