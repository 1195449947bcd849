"""
A clinic with real prices
=========================

Thirteen tests for heart disease, at the prices that were paid for them in Canada. All of them cost
324 dollars. How much of that is needed for the same decision?
"""

# %%
# A forest in place of the clinic's model, trained on half of the patients.

import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from askwise import DynamicFeatureSelector
from askwise.datasets import load
from askwise.displays import AcquisitionOrderDisplay, SavingsDisplay

heart = load("heart")
X, X_new, y, y_new = train_test_split(heart.X, heart.y, test_size=0.5, random_state=0, stratify=heart.y)
model = RandomForestClassifier(50, min_samples_leaf=2, random_state=0).fit(X, y)
selector = DynamicFeatureSelector(model, costs=heart.prices, epistemic=None, random_state=0).fit(X, y)

# %%
# When to stop is learned from 75 other patients. Their diagnoses are not needed.

stop = selector.calibrate_stop(X_new[:75], agreement=0.9)
print(stop.promise)

# %%
# On the patients that are left:

rest, diagnosis = X_new[75:], y_new[75:]
run = selector.acquire(rest, stop="calibrated")
same = run.predict(-1) == selector.predict(rest)
print(f"{run.spent_after(-1).mean():.0f} dollars per patient instead of {selector.prices_.total():.0f}")
print(f"the same decision in {same.mean():.0%}, right in {(run.predict(-1) == diagnosis).mean():.0%}")

# %%
# What is asked when: the first questions are nearly free, and which expensive test comes next
# depends on their answers.

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
AcquisitionOrderDisplay.from_trajectory(run, ax=left)
SavingsDisplay.from_selector(selector, rest, unit="CAD", ax=right)
plt.show()
