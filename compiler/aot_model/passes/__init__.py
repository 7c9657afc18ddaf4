"""Passes: small functions from Graph to Graph, one file each. Their order is the list in
passes/manager.py.
"""
