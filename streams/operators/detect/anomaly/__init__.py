"""Streaming anomaly detectors over many series at once: each says how surprising a value is, in decades of its series' own past.

The contract that every detector here keeps (`tests/unit/streams/detect/anomaly/test_contract.py` holds them all to it):

* It counts in *points*: the mean of what a series said since its last point (`points.py`). No look-ahead, no labels, no series of its own.
* It is given `cells` (m,), places `row * width + column` of the row table, distinct within a call, with their `values` (m,), finite, and
  `number` (m,), how many points each series had before. It answers with *surprise* (m,): decades, that is minus the logarithm to base 10 of
  how rarely the series did the like before; NaN while too little is known. The value joins what is known only after it was judged.
* A score is `surprise / (surprise + limit)`: between 0 and 1, and 0.5 exactly at the limit of that detector (`score.py`).
* Scores are the same for x, 1e9 * x, 1e-9 * x and x + c. A series that never varied and then changes is an anomaly. What is unknown
  is neither zero nor an anomaly: it is not handed in. What lasts becomes usual: nothing stays odd for being different once.
* State is numpy columns of shape (capacity, width, ...) in the row table, named `anomaly_*`. Only the cells at hand are read and written.

`novelty.py` carries most of the weight: is a value, or a way of getting there, one that this series has not shown before?
`ewma.py`, `shift.py` and `step.py` measure distance from the recent mean, and change of mean, of variance and of level; `seasonal.py`
asks whether the value is usual for the hour of the day. `ensemble.py` puts them together and is what `samples.step` calls.
"""
