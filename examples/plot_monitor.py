"""
A promise that is watched
=========================

A stop promises that 90 % of the decisions are those of the full row. For some cases everything is asked after
the advice to stop, and the evidence against the promise is followed. One day other patients come.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector


def patients(n, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["age", "lab", "culture", "scan"])
    chance = 1 / (1 + np.exp(-2 * (X["age"] + X["lab"] + 2 * X["scan"])))
    return X, (rng.random(n) < chance).astype(int).to_numpy()


X, y = patients(300, 0)
prices = {"age": 0, "lab": 1, "culture": 1, "scan": 5}
selector = DynamicFeatureSelector(LogisticRegression().fit(X, y), costs=prices, epistemic=None, random_state=0)
stop = selector.fit(X, y).calibrate_stop(patients(400, 1)[0], agreement=0.9)
print(stop.promise)

# %%
# After 300 checked cases another kind of patient comes, whose scan tends to contradict age and laboratory.

before, later = patients(300, 2)[0], patients(300, 3)[0]
later["scan"] -= 0.7 * (later["age"] + later["lab"])
served = pd.concat([before, later], ignore_index=True)
lost = selector.acquire(served, stop=stop).predict() != selector.predict(served)
print(f"decisions broken: {lost[:300].mean():.1%} before, {lost[300:].mean():.1%} after the change")

monitor, evidence, kept = stop.monitor(), [], []
for case in lost:
    monitor.update(case)
    row = monitor.report()["rows"][0]
    evidence.append(row["evidence"])
    kept.append((row["low"], row["high"]))

# %%
# One may look after every case: while the promise is kept, the evidence reaches the line in one of ten deployments
# at most.

figure, (above, below) = plt.subplots(2, 1, figsize=(8, 5), layout="constrained", sharex=True)
above.semilogy(evidence, color="#3b6fd4")
above.axhline(row["needed"], color="#e0793a", linestyle="--", label="alarm")
above.set_ylabel("evidence against it")
above.legend(frameon=False)
below.fill_between(np.arange(len(kept)), *np.transpose(kept), color="#3b6fd4", alpha=0.3)
below.axhline(0.9, color="#e0793a", linestyle="--", label="promised")
below.set(ylabel="decisions kept", xlabel="checked cases")
for ax in (above, below):
    ax.axvline(300, color="#7a828c", linewidth=1)
plt.show()

# %%

print(*monitor.alarms, monitor.advice, sep="\n")
