"""
A rare disease, with a promise for each class
=============================================

One patient in twenty is ill. A stop that keeps 90 % of all decisions could send nearly all of them
home. So the promise is made for each class.
"""

# %%
# Made patients: the disease shows in two expensive tests, and a cheap one hints at it.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from askwise import DynamicFeatureSelector

rng = np.random.default_rng(1)
n = 3000
ill = rng.random(n) < 0.05
patients = pd.DataFrame(
    {
        "temperature": rng.normal(37 + 0.5 * ill, 0.4),
        "pulse": rng.normal(75 + 6 * ill, 9),
        "blood test": rng.normal(1.6 * ill, 0.7),
        "scan": rng.normal(2.6 * ill, 0.7),
    }
)
state = np.where(ill, "ill", "healthy")
prices = {"temperature": 1, "pulse": 1, "blood test": 20, "scan": 200}
model = RandomForestClassifier(60, min_samples_leaf=3, random_state=0).fit(patients[:700], state[:700])
selector = DynamicFeatureSelector(model, costs=prices, epistemic=None, policy="greedy", random_state=0)
selector.fit(patients[:700], state[:700])

# %%
# Twice the same agreement, without and with a promise for each class:

cal, new, truth = patients[700:2000], patients[2000:], state[2000:]
rows = []
for name, per_class in {"all cases together": False, "each class": "auto"}.items():
    stop = selector.calibrate_stop(cal, agreement=0.9, per_class=per_class)
    run = selector.acquire(new, stop="calibrated")
    decided, full = run.predict(-1), selector.predict(new)
    called_ill = full == "ill"  # what the model decides with everything known, which the promise is about
    rows.append(
        {
            "promise": name,
            "price": run.spent_after(-1).mean(),
            "decisions kept": (decided == full).mean(),
            "of those called ill": (decided == full)[called_ill].mean(),
            "truly ill found": (decided == "ill")[truth == "ill"].mean(),
        }
    )
found = pd.DataFrame(rows).set_index("promise")
print(found.round(2).T)
full_found = (selector.predict(new) == "ill")[truth == "ill"].mean()
print(f"All features cost {selector.prices_.total():.0f} and find {full_found:.2f} of the truly ill.")

# %%
# The first stop is cheap and keeps its word, and misses those whom the tests are for. The second
# one pays for looking at them.

figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
bars = found[["decisions kept", "of those called ill"]]
bars.index = [f"{name}\n{price:.0f} per patient" for name, price in found["price"].items()]
bars.plot.barh(ax=axes, color=["#7a828c", "#c2475b"], width=0.7)
axes.axvline(0.9, color="#3c434c", linestyle="--", linewidth=1)
axes.text(0.9, -0.62, "promised ", ha="right", va="center", fontsize=9)
axes.set_xlabel("share of the decisions that is kept")
axes.set_ylabel("")
axes.set_xlim(0, 1.02)
axes.invert_yaxis()
axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.17), ncols=2)
plt.show()
