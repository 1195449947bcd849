"""
Rules in words
==============

A fuzzy tree says why in the names of the table. Where a feature is unknown, the conditions on it
are removed and the confidence of the rule is counted again on the rows that satisfy the rest.
"""

# %%

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from askwise import DynamicFeatureSelector
from askwise.displays import TrajectoryDisplay
from askwise.trees import FuzzyTreeClassifier

X, y = load_wine(return_X_y=True, as_frame=True)
y = y.map({0: "Barolo", 1: "Grignolino", 2: "Barbera"})
tree = FuzzyTreeClassifier(max_depth=4).fit(X[::2], y[::2])
selector = DynamicFeatureSelector(tree, adaptation="rules", epistemic=None, random_state=0).fit(X[::2], y[::2])

# %%
# One wine, a question at a time.

wine = X.iloc[151]
case = selector.start(budget=4)
while (question := case.suggest()) is not None:
    case.answer(question.feature, wine[question.feature])
    print(f"{question.feature} = {wine[question.feature]:g}")
    for rule in case.report()["rules"]["firing"][:2]:
        conditions = " and ".join(rule["conditions"]) or "always"
        print(f"   if {conditions}: {rule['then']}, {rule['confidence']:.0%} of {rule['support']:.0f} rows")
print("it is a", y.iloc[151])

# %%
# What the rules say together after each answer:

TrajectoryDisplay.from_session(case)
plt.show()
