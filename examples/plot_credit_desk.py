"""
A credit desk with error costs
==============================

A credit that is not paid back costs 5,000, a good customer sent away 800. Each inquiry costs
something too. No budget is needed: what does not pay for itself is not asked.
"""

# %%
# Made applications, so that nobody's are shown here: who defaults depends on income, debts, and the
# history at the agency.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from askwise import DynamicFeatureSelector

rng = np.random.default_rng(0)
n = 1600
applications = pd.DataFrame(
    {
        "age": rng.integers(20, 70, n),
        "stated income": rng.lognormal(8, 0.4, n).round(-2),
        "amount": rng.lognormal(9, 0.5, n).round(-2),
    }
)
strain = applications["amount"] / (12 * applications["stated income"])
late = rng.poisson(0.6 + 0.5 * (rng.random(n) < 0.3), n)
applications["proof of income"] = (applications["stated income"] * rng.normal(0.9, 0.15, n).clip(0.3, 1.1)).round(-2)
applications["late payments"] = late
applications["value of house"] = np.where(rng.random(n) < 0.4, rng.lognormal(12, 0.4, n).round(-3), 0)
risk = 4 * strain + 0.9 * late - 1.2 * (applications["value of house"] > 0) - 2.4 + rng.normal(0, 0.7, n)
outcome = np.where(risk > 0, "default", "repaid")
prices = {"age": 0, "amount": 0, "stated income": 0, "proof of income": 25, "late payments": 15, "value of house": 180}

# %%
# Error costs are in the unit of the prices.

old, new = slice(0, 1000), slice(1000, None)
model = HistGradientBoostingClassifier(max_iter=40, random_state=0).fit(applications[old], outcome[old])
selector = DynamicFeatureSelector(
    model, costs=prices, error_costs={"default": 5000, "repaid": 800}, epistemic=None, random_state=0
).fit(applications[old], outcome[old])

run = selector.acquire(applications[new])
truth = outcome[new]


def cost(decision, spent):
    wrong = decision != truth
    return spent.mean(), (np.where(truth == "default", 5000, 800) * wrong).mean()


full = selector.predict(applications[new])
nothing = selector.predict(applications[new].assign(**{name: np.nan for name, price in prices.items() if price}))
ways = {
    "inquire nothing": cost(nothing, np.zeros(600)),
    "inquire everything": cost(full, np.full(600, selector.prices_.total())),
    "askwise": cost(run.predict(-1), run.spent_after(-1)),
}

# %%
# What inquiries and errors cost together, per application:

figure, axes = plt.subplots(figsize=(7, 2.8), layout="constrained")
names = list(ways)
inquiries, errors = np.array(list(ways.values())).T
axes.barh(names, inquiries, color="#e0793a", label="inquiries")
axes.barh(names, errors, left=inquiries, color="#3b6fd4", label="errors")
for k, total in enumerate(inquiries + errors):
    axes.text(total + 5, k, f"{total:.0f}", va="center")
axes.invert_yaxis()
axes.set_xlabel("cost per application")
axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
plt.show()

# %%
# Whom it asks: the more a decision hangs in the balance, the more an inquiry is worth.

asked = pd.DataFrame({name: (run.order == i).any(axis=1) for i, name in enumerate(run.features) if prices[name]})
print(asked.groupby(run.predict(-1)).mean().round(2))
