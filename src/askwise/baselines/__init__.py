"""The rivals: methods of others, each a predictor and a policy of its own, run through the same loop."""
