"""What the paper reports and claims, beside which ours is set."""
