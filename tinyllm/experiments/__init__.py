"""Each measurement as a generator of small rows, shared by pages, command line and tests.

An experiment loads no models and draws nothing: it is given models and a RunConfig, and yields.
"""
