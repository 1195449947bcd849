"""A grid of trials (data, method, prices, seed): planned, run, stored, resumed."""
