"""Datasets as Spark reads them: opened, pinned to their current version, with every value accounted
for.

Enter through `open.open_dataset`, which returns a `dataset.OpenDataset`. Each of the other modules
closes one way in which Spark would read other rows than those that were promised.
"""
