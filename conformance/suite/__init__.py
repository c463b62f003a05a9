"""What the tests of the suite share: callers, expectations, request examples and everything else they speak."""
