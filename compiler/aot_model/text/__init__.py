"""What is known of text at compile time: regular expressions as automata, pairs of capital and small
letters.
"""
