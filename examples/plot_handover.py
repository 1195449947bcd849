"""
The least certain cases go to a person
======================================

Of what is decided, 93 % shall be right. Which cases must be handed over for that?
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from askwise import DynamicFeatureSelector
from askwise.displays import RejectionDisplay

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X.iloc[:, :10]
order = np.random.default_rng(0).permutation(len(X))
X, y = X.iloc[order], y.iloc[order].map({0: "malignant", 1: "benign"})
model = RandomForestClassifier(50, random_state=0).fit(X[:180], y[:180])
selector = DynamicFeatureSelector(model, epistemic=None, policy="greedy", random_state=0).fit(X[:180], y[:180])

# %%
# Each rule has rows of its own: eighty for the stop, two hundred for the hand-over.

selector.calibrate_stop(X[180:260], agreement=0.9)
rule = selector.calibrate_handover(X[260:460], y[260:460], accuracy=0.93)
print(rule)

# %%
# On new cases, by the uncertainty of the prediction at the end. The cross is the rule.

new, truth = X[460:], y[460:]
run = selector.acquire(new, stop="calibrated")
over = run.handed_over
right = run.predict(-1) == truth
figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
RejectionDisplay.from_selector(selector, new, truth, stop="calibrated", measures=("confidence_gap",), ax=axes)
axes.plot(over.mean(), right[~over].mean(), "X", markersize=11, color="#c2475b", label="calibrated hand-over")
axes.legend(frameon=False, loc="lower right")
plt.show()

# %%
# Who they are. The promise is about all cases like these; of about a hundred, chance alone makes a
# difference of two or three points.

print(f"{over.sum()} of {len(over)} cases; right among them {right[over].mean():.1%}")
decided = right[~over]
print(f"right among the others {decided.mean():.1%}, give or take {decided.sem():.1%}")
