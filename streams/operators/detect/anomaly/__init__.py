"""Streaming anomaly detectors over many series at once: each says how far a value is from anything its series has shown.

The contract that every detector here keeps (`tests/unit/streams/detect/anomaly/test_contract.py` holds them all to it):

* It counts in *points*: the mean of what a series said since its last point (`points.py`). No look-ahead, no labels, no series of its own.
* `define(table, width, options)` makes its columns, of shape (capacity, width, ...), named `anomaly_*`. Only cells at hand are touched.
* `surprise(table, given, options)` answers (m,) for m points of distinct series: 0 or more, in a unit of its own; NaN while too little is
  known. `LIMIT` is the surprise that scores 0.5; a score is `surprise / (surprise + LIMIT)`, between 0 and 1. The value joins what is
  known only after it was judged.
* Scores are the same for x, 1e9 * x, 1e-9 * x and x + c. A series that never varied and then changes is an anomaly. What is unknown
  is neither zero nor an anomaly: it is not handed in. What lasts becomes usual: nothing stays odd for being different once.

`level.py` carries most of the weight: how far is a value from the nearest one the series ever showed? `pattern.py` asks the same of the way
it got there, in cells. `seasonal.py` asks it of the distance to what is usual for the hour. `ewma.py`, `shift.py` and `step.py` measure the
distance from the recent mean, and changes of mean, of variance and of level. `ensemble.py` puts them together: `samples.step` calls it.
"""
