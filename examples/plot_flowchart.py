"""
A policy as a flowchart
=======================

Three questions to hang on the wall. The chart says of itself how often it decides like the policy,
and like the model with everything known.
"""

# %%

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from askwise import DynamicFeatureSelector

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})
model = RandomForestClassifier(50, random_state=0).fit(X[:300], y[:300])
selector = DynamicFeatureSelector(model, epistemic=None, policy="greedy", random_state=0).fit(X[:300], y[:300])

# %%
# It is grown on rows that ``fit`` has not seen, without their labels.

chart = selector.flowchart(X[300:], max_depth=3)
print(chart.to_text())

# %%
# As a picture:

chart
