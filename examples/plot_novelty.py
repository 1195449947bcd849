"""
Outside of everything seen
==========================

A model is sure of itself where it has never been. Novelty says how far a case is from all training
rows: 0 is within them.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.neural_network import MLPClassifier

from askwise import DynamicFeatureSelector

X, y = make_moons(300, noise=0.15, random_state=0)
model = MLPClassifier((50,), max_iter=800, random_state=0).fit(X, y)
selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)

# %%
# Over the whole plane: the confidence of the network, what it differs from models trained like it,
# and novelty.

across, up = np.meshgrid(np.linspace(-3.5, 4.5, 45), np.linspace(-3, 3.5, 40))
plane = np.column_stack([across.ravel(), up.ravel()])
found = selector.uncertainty(plane)
panels = {
    "confidence of the model": selector.predict_proba(plane).max(axis=1),
    "epistemic uncertainty (nats)": found.epistemic,
    "novelty": found.novelty,
}
figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
for ax, (name, values) in zip(axes, panels.items(), strict=True):
    shown = np.minimum(values, np.quantile(values[np.isfinite(values)], 0.98)).reshape(across.shape)
    mesh = ax.pcolormesh(across, up, shown, cmap="Blues", shading="gouraud")
    figure.colorbar(mesh, ax=ax, shrink=0.8)
    ax.scatter(*X.T, c=np.where(y, "#e0793a", "#3c434c"), s=5)
    ax.set_title(name, loc="left")
    ax.set(xticks=[], yticks=[])
plt.show()

# %%
# Far from the data the network is as sure as ever, and the others agree with it: only novelty
# objects.
