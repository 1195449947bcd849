"""
Ordering while results are out
==============================

Each test takes a day. Whoever waits for each result pays least and decides last; whoever orders the next test for what
it tells beyond those that are out decides sooner.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector, Prices
from askwise.stopping import Confidence

rng = np.random.default_rng(0)
n = 700
y = rng.integers(0, 2, n)
strength = {"blood": 1.0, "urine": 0.9, "scan": 1.5, "smear": 0.8, "culture": 1.2}
X = pd.DataFrame({name: rng.normal(s * y, 1) for name, s in strength.items()})
model = LogisticRegression().fit(X[:400], y[:400])
prices = Prices({"blood": 8, "urine": 6, "scan": 40, "smear": 7, "culture": 15}, time=dict.fromkeys(X, 1.0))
selector = DynamicFeatureSelector(model, costs=prices, epistemic=None, random_state=0).fit(X[:400], y[:400])

# %%
# One case with up to `most` results out; every day brings back what was ordered the day before.


def worked(row, most):
    case, days = selector.start(stop=Confidence(0.9)), 0
    while True:
        while len(case.pending) < most and (suggestion := case.suggest()) is not None:
            case.order(suggestion.feature)
        if not case.pending or case.why(outcomes=False)["advice"] == "stop":
            return days, case.report()["spent"]
        days += 1
        for name in case.pending:
            case.answer(name, float(row[name]))


figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for most in (1, 2, 3, 5):
    days, spent = np.mean([worked(X.iloc[r], most) for r in range(400, 430)], axis=0)
    ax.scatter(days, spent)
    ax.annotate(f" {most} out", (days, spent))
ax.set(xlabel="days until the decision", ylabel="spent per case", title="Sooner costs more")
plt.show()
