"""
Records in which the best test is missing
=========================================

The scan was ordered for clear cases, mostly. Scored as if it could not have been done, the selector looks
worse than it is; weights, draws, and both together tell what happens where it can be had.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector
from askwise.stopping import Confidence


def patients(n, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["age", "lab", "culture", "scan"])
    chance = 1 / (1 + np.exp(-2 * (X["age"] + X["lab"] + 2 * X["scan"])))
    return X, (rng.random(n) < chance).astype(int).to_numpy()


X, y = patients(300, 0)
prices = {"age": 0, "lab": 1, "culture": 1, "scan": 5}
model = LogisticRegression().fit(X, y)
selector = DynamicFeatureSelector(model, costs=prices, epistemic=None, random_state=0).fit(X, y)
stop = Confidence(0.9)

# %%
# Because the population is made, the truth is known: the same cases with every scan.

whole, labels = patients(400, 1)
truth = selector.evaluate(whole, labels, missing="blocked", stop=stop).iloc[0]
done = np.random.default_rng(2).random(400) < 1 / (1 + np.exp(2 - 3 * whole["age"].abs()))
records = whole.assign(scan=whole["scan"].where(done))
table = selector.evaluate(records, labels, missing="all", stop=stop)

figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained", sharey=True)
rows = np.arange(len(table))[::-1]
for ax, name, title in zip(axes, ["accuracy", "spent"], ["right decisions", "price of a case"], strict=True):
    around = np.abs(table[[f"{name}_low", f"{name}_high"]].sub(table[name], axis=0)).T
    ax.errorbar(table[name], rows, xerr=around, fmt="o", color="#3b6fd4", capsize=4)
    ax.axvline(truth[name], color="#e0793a", linestyle="--", label="truth")
    ax.set_title(title)
axes[0].set_yticks(rows, table["missing"].str.replace("_", " "))
axes[0].legend(frameon=False)
plt.show()

# %%
# Each number rests on an assumption, and says which.

for row in table.itertuples():
    print(f"{row.missing}: {row.assumes}.")
