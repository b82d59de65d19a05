"""Faults from outside of the product: disks that fill, lie or lose power, and locks that keep nobody out."""
