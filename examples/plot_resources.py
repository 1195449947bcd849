"""
Dollars and hours
=================

Heart disease again, at its published prices; and the results of most tests are back the next day. A case may take 200
dollars and 24 hours: what changes with the second budget, and what is an hour worth?
"""

# %%
# The published delays are "immediate" and "delayed", which is the next day: 24 hours. Tests that share a set-up, such
# as the three results of an exercise ECG, share the day as well.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from askwise import DynamicFeatureSelector, Prices
from askwise.datasets import load
from askwise.stopping import Confidence

heart = load("heart")
rows = heart.X.notna().all(axis=1)
labels = heart.y[rows]
X, X_new, y, y_new = train_test_split(heart.X[rows], labels, test_size=0.5, random_state=0, stratify=labels)
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
published = heart.prices
hours = {test: 24 * delay for test, delay in published.time.items()}
shared = [(tests, {"money": saving, "time": 24}) for tests, saving in published.shared]


def with_weight(an_hour):
    """A selector to which an hour is worth so many dollars."""
    prices = Prices(published.costs, shared, time=hours, weights={"time": an_hour})
    return DynamicFeatureSelector(model, costs=prices, epistemic=None, calibration=None, random_state=0).fit(X, y)


selector = with_weight(0)

# %%
# Asked one after the other, tests take the sum of their hours; ordered together, the longest. So a case that must be
# decided tomorrow has one delayed test, or as many as the dollars pay for, if they are ordered at once.

budget = {"money": 200, "time": 24}
run = selector.acquire(X_new[:1], budget)
print("one by one:", [selector.features_[i] for i in run.order[0] if i >= 0], run.spent_after(-1, "time")[0], "hours")
together = selector.start(budget=budget).suggest_set(200)
print("together:", together.features, together.amounts)

# %%
# On the left, decisions under both budgets. On the right, cases that go on until the model is 80 % sure: the more an
# hour is worth, the more a day is spent on tests that tell much, and the fewer days it takes.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
dollars = np.array([0, 5, 10, 20, 40, 80, 120, 160, 200, 260, 320])
for days, shade in zip((0, 1, 2, 3, None), plt.colormaps["viridis"](np.linspace(0.85, 0.1, 5)), strict=True):
    limits = [{"money": money, "time": None if days is None else 24 * days} for money in dollars]
    kept = selector.evaluate(X_new, y_new, limits, missing="blocked")["kept"]
    left.plot(dollars, kept, ".-", color=shade, label="no limit" if days is None else f"{24 * days} hours")
left.set(xlabel="dollars a case may cost", ylabel="decision as with everything known", title="Two budgets")
left.legend(title="and may take", frameon=False)

points = []
for an_hour in (0, 0.1, 0.3, 1, 3, 30):
    run = with_weight(an_hour).acquire(X_new, stop=Confidence(0.8))
    points.append([run.spent_after(-1, "time").mean(), run.spent_after(-1).mean()])
    print(f"an hour is worth {an_hour}: {points[-1][0]:.0f} hours and {points[-1][1]:.0f} dollars per case")
points = np.array(points)
right.plot(*points.T, "o-", color="C0")
for an_hour, (time, money) in zip((0, 0.1, 0.3, 1, 3, 30), points, strict=True):
    right.annotate(f"  ${an_hour:g}", (time, money), va="bottom")
right.set(xlabel="hours per case", ylabel="dollars per case", title="What an hour is worth")
right.margins(0.12)
plt.show()
