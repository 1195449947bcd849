"""What a case is: columns, features, encoded rows, subsets, prices, labels and units, and reading files."""
