"""Images as patches: the grid of patches, and predictors, value networks and policies for them."""
