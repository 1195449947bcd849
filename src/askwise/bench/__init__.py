"""Every table and figure of the paper from one command: a grid of methods, data, prices and seeds, resumable."""
