"""
Reading a trajectory
====================

``acquire`` records every step of every case: what was asked, what it cost, what was predicted after
it, and how sure that was.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from askwise import DynamicFeatureSelector

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})
X = X[[name for name in X.columns if "worst" in name]].rename(columns=lambda name: name.replace("worst ", ""))
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:250], y[:250])
selector = DynamicFeatureSelector(model, random_state=0).fit(X[:250], y[:250])
run = selector.acquire(X[250:400], budget=6)
run

# %%
# A tidy table has a row per case and step.

print(run.to_frame().query("case == 0")[["step", "feature", "spent", "prediction", "total", "epistemic"]])

# %%
# The arrays are there too: ``proba`` is (cases, steps + 1, classes). Here the probability of
# "malignant" of every case on its way. Those that cross the line changed their mind; the thick one
# did so last.

path = run.proba[:, :, list(run.classes).index("malignant")]
crossings = np.abs(np.diff(path > 0.5, axis=1))
last = np.where(crossings.any(axis=1), crossings.shape[1] - crossings[:, ::-1].argmax(axis=1), 0)
figure, axes = plt.subplots(figsize=(7.5, 4), layout="constrained")
axes.plot(path.T, color="#7a828c", alpha=0.25, linewidth=1)
axes.plot(path[last.argmax()], color="#c2475b", linewidth=2.6)
axes.axhline(0.5, color="#3c434c", linestyle="--", linewidth=1)
axes.set(xlabel="features acquired", ylabel="probability of malignant", xlim=(0, 6))
plt.show()
print("case", run.index[last.argmax()], "asked:", [run.features[i] for i in run.order[last.argmax()]])
