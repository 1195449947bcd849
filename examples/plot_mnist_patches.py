"""
Handwritten digits, patch by patch
==================================

A network has learned to read whole digits. Here it may look at a few of sixteen patches, and
askwise says at which. Needs torch and matplotlib; MNIST is downloaded on first use, or read from
the folder that ``ASKWISE_DATA`` names.
"""

# %%
# Train a small network on complete images: it stands for the network that you have.

import numpy as np

from askwise import DynamicFeatureSelector
from askwise.datasets.images import load_images
from askwise.vision import PatchGrid, filmstrip, small_cnn, train_classifier

mnist = load_images("mnist")
rng = np.random.default_rng(0)
train, test = rng.permutation(len(mnist.y))[:3000], rng.permutation(len(mnist.test_y))[:200]
X, y = mnist.images[train], mnist.y[train]
X_test, y_test = mnist.test_images[test], mnist.test_y[test]
network = train_classifier(small_cnn(10), X, y, epochs=5, random_state=0)

# %%
# Wrap it. A patch is a feature; nothing is retrained. What is hidden is completed from similar
# training images.

selector = DynamicFeatureSelector(network, groups=PatchGrid(4, 4), random_state=0).fit(X, y)

# %%
# How often is it right after 1 to 8 patches: its own choice, the middle first, or at random?

budgets = range(1, 9)
for name in ("auto", "static", "random"):
    accuracy = selector.with_policy(name).evaluate(X_test, y_test, budgets)["accuracy"]
    print(f"{name:<8}", *(f"{share:6.1%}" for share in accuracy))

# %%
# One image: a session takes the patches as answers and says after each what it believes, and how
# surely.

image, label = X_test[0], y_test[0]
case = selector.start(budget=4)
while (question := case.suggest()) is not None:
    row, column = divmod(selector.features_.index(question.feature), 4)
    case.answer(question.feature, image[:, 7 * row : 7 * row + 7, 7 * column : 7 * column + 7])
    report = case.report()
    print(question.feature, report["prediction"], round(report["uncertainty"]["total"], 2))

# %%
# The same as a film. The true class has a red edge; a wrong prediction is red.

filmstrip(selector, image, 8, label=label, path="mnist.png")
print("written to mnist.png; the true label is", label)

# sphinx_gallery_thumbnail_path = 'mnist.png'
