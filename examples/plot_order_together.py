"""
Tests to order together
=======================

If the laboratory returns everything at once, the question is not what comes next but which set. Two
features that say the same are not worth the price of two.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from askwise import DynamicFeatureSelector
from askwise.datasets import load

heart = load("heart")
X, y = heart.X[:200], heart.y[:200]
model = RandomForestClassifier(40, min_samples_leaf=2, random_state=0).fit(X, y)
selector = DynamicFeatureSelector(model, costs=heart.prices, epistemic=None, random_state=0).fit(X, y)
case = selector.start(known={"age": 57, "sex": 1, "cp": 4})

# %%
# The best set within a price, for rising prices. Set-up costs are counted once.

prices = [5, 20, 60, 105, 150, 200, 230, 320]
sets = [case.suggest_set(price) for price in prices]
for price, best in zip(prices, sets, strict=True):
    print(f"{price:4}: {', '.join(best.features)}")

# %%

chosen = sorted({name for best in sets for name in best.features}, key=lambda name: heart.prices.costs[name])
grid = np.array([[name in best.features for best in sets] for name in chosen])
figure, (top, bottom) = plt.subplots(2, 1, figsize=(7.5, 5.4), layout="constrained", height_ratios=[1, 2])
top.bar(range(len(prices)), [best.gain for best in sets], color="#3b6fd4")
top.set_ylabel("expected gain (nats)")
top.set_xticks([])
bottom.pcolormesh(grid, cmap="Blues", vmax=1.4, edgecolors="white", linewidth=2)
bottom.set_yticks(np.arange(len(chosen)) + 0.5, chosen)
bottom.set_xticks(np.arange(len(prices)) + 0.5, prices)
bottom.set_xlabel("price of the set, at most")
top.set_xlim(-0.5, len(prices) - 0.5)
plt.show()
