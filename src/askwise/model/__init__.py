"""The user's model, which is never changed: scikit-learn, torch, functions and files."""
