"""What the paper prints about images: Table 4, and its names."""

from __future__ import annotations

DATA = {"mnist": "MNIST", "cifar10": "CIFAR-10", "imagenette": "Imagenette"}
METHODS = {
    "cnn": "CNN*",
    "recnn": "ReCNN*",
    "adcnn": "AdCNN*",
    "adrecnn": "AdReCNN*",
    "adcnn-longer": "AdCNN, longer training",
    "adcnn-resnet18": "AdCNN, ResNet-18",
    "patch-askwise": "askwise on images",
    "patch-dime": "DIME on images",
    "patch-vip": "VIP on images",
    "patch-gdfs": "GDFS on images",
}
"""Its names of the methods, and ours for those that it does not have."""

OURS_IN_PAPER = ("cnn", "recnn", "adcnn", "adrecnn")

ACCURACIES = {
    "patch-dime": {"mnist": (77.94, 13.64), "cifar10": (55.57, 17.60), "imagenette": (72.09, 10.81)},
    "patch-vip": {"mnist": (75.76, 19.35), "cifar10": (54.20, 18.00), "imagenette": (81.01, 8.90)},
    "cnn": {"mnist": (90.70, 8.97), "cifar10": (33.37, 12.29), "imagenette": (46.58, 21.76)},
    "recnn": {"mnist": (86.70, 15.02), "cifar10": (30.47, 12.94), "imagenette": (55.76, 17.17)},
    "adcnn": {"mnist": (95.52, 4.58), "cifar10": (51.15, 12.60), "imagenette": (69.25, 13.04)},
    "adrecnn": {"mnist": (96.54, 2.90), "cifar10": (47.60, 14.15), "imagenette": (68.08, 8.79)},
}
"""Table 4: mean accuracy and its spread over the numbers of patches: 1-10 by the caption, 2-10 by Appendix G."""
