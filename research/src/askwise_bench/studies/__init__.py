"""What is measured of a fitted method: accuracy under budgets, subsets, policies, uncertainty."""
