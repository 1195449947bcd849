"""The comparisons behind askwise: published methods with its interface, and the paper's tables and figures.

Every table and figure comes from one command, `askwise bench`: a grid of methods, data, prices and seeds, resumable.
This package is a user of askwise: it needs its public names only, and nothing in askwise imports it.
"""
