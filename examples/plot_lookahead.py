"""
A question that only tells what to ask next
===========================================

A switch says which of three sensors decides. Alone it tells nothing about the label, so a greedy
policy never asks for it. Looking one question ahead finds it.
"""

# %%
# The task states the accuracy of its best policy, so that we know what there is to reach.

import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestClassifier

from askwise import DynamicFeatureSelector
from askwise.datasets import make_switch
from askwise.displays import BudgetDisplay

data = make_switch(1400, noise=0.5, block_size=1, n_noise=2, random_state=0)
X, y = data.X, data.y
model = RandomForestClassifier(80, min_samples_leaf=3, random_state=0).fit(X[:900], y[:900])
selector = DynamicFeatureSelector(model, epistemic=None, policy="lookahead", random_state=0).fit(X[:900], y[:900])
print(selector.choices_["policy"])

# %%
# With two questions, switch and sensor, the one who looks ahead is nearly done. The others hope for
# the right sensor.

BudgetDisplay.from_selector(
    selector, X[900:], y[900:], range(1, 6), policies={"greedy": "greedy", "static": "static", "random": "random"}
)
plt.show()
