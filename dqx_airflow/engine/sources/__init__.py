"""Datasets as Spark reads them: opened, pinned to what is there now, every value accounted for.

`open.open_dataset` is the door and gives a `dataset.OpenDataset`. Each module beside it closes one
way in which Spark would read other rows than the ones that were promised.
"""
