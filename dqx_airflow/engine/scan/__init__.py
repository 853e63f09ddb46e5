"""The fused scan: answers the requests of a plan for each dataset in as few Spark jobs as possible.

Enter through `dataset_scan.scan`. `passes` decides what is read together, `shortcuts` what need not
be read, `states` what earlier runs have computed.
"""
