"""The fused scan: what a plan asks of each dataset, answered in as few Spark jobs as possible.

`dataset_scan.scan` is the door. `passes` decides what is read together, `shortcuts` what need not
be read, `states` what earlier runs already know.
"""
