"""The tests; modules beside this one are imported by several of them."""
