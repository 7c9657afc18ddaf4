"""The cases of all modules, in the order in which they draw their numbers."""

from __future__ import annotations

import audio
import elementary
import elementary_movements
import elementary_pools_and_products
import elementary_quantised
import float_operators
import hybrid
import indexing
import integer_lstm
import layers
import lists
import others
import rnn
import speech
import tensorflow_operators
import unequal_quantisation
import unusual_forms
import windows
import zero_scales

CASES = [
    *indexing.CASES,
    *layers.CASES,
    *elementary.CASES,
    *elementary_movements.CASES,
    *elementary_pools_and_products.CASES,
    *elementary_quantised.CASES,
    *float_operators.CASES,
    *others.CASES,
    *audio.CASES,
    *hybrid.CASES,
    *rnn.CASES,
    *windows.CASES,
    *unequal_quantisation.CASES,
    *speech.CASES,
    *integer_lstm.CASES,
    *zero_scales.CASES,
    *lists.CASES,
    *tensorflow_operators.CASES,
    *unusual_forms.CASES,
]
