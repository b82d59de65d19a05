"""Wrong ways to build the writer, as patches to the product: the tests that guard against them must go red."""
