"""The page of a compiled model: one HTML file with its graph, its memory over time, and what each layer
costs.
"""
