# SPDX-License-Identifier: BSD-3-Clause
"""Counters and gauges of a Python program, for the metric proxy of its node.

    import metric_proxy

    steps = metric_proxy.counter("solver_steps_total", "steps of the solver")
    temperature = metric_proxy.gauge("reactor_celsius", "temperature", reactor="2")
    with metric_proxy.timer("solver_seconds_total", "time in the solver"):
        steps.inc()
        temperature.set(451)

One module, no build step: it loads libproxyclient.so by ctypes: the one that METRIC_PROXY_CLIENT names,
else the one of the Cicada that it is installed with, else as the loader finds it. Where the library is missing, or refuses a metric, everything here does nothing, so that a
program never fails for lack of a proxy: is_available() tells. Threads may share all objects; a forked child counts for
itself.
"""
import atexit
import ctypes
import os
import pathlib
import time

__all__ = ["counter", "gauge", "histogram", "timer", "is_available"]

_NAME = "libproxyclient.so"


class _Label(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_char_p)]


def _places():
    if os.environ.get("METRIC_PROXY_CLIENT"):
        yield os.environ["METRIC_PROXY_CLIENT"]
        return
    here = pathlib.Path(__file__).resolve()
    for folder in here.parents:
        for place in (folder, folder / "lib"):
            if (place / _NAME).exists():
                yield str(place / _NAME)
    yield f"{_NAME}.0"


def _load():
    for place in _places():
        try:
            library = ctypes.CDLL(place)
        except OSError:
            continue
        value, text, real = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_double
        labels = [ctypes.POINTER(_Label), ctypes.c_size_t]
        for name, result, arguments in (
                ("init", value, []), ("release", ctypes.c_int, [value]),
                ("counter_new_labels", value, [value, text, text, *labels]), ("counter_inc", ctypes.c_int, [value, real]),
                ("counter_add_u64", ctypes.c_int, [value, ctypes.c_uint64]),
                ("gauge_new_labels", value, [value, text, text, *labels]), ("gauge_set", ctypes.c_int, [value, real]),
                ("histogram_new", value, [value, text, text, ctypes.POINTER(real), ctypes.c_size_t]),
                ("histogram_observe", ctypes.c_int, [value, real]),
                ("timer_new", value, [value, text, text])):
            function = getattr(library, f"metric_proxy_{name}")
            function.restype, function.argtypes = result, arguments
        return library
    return None


_library = _load()
_client = _library.metric_proxy_init() if _library else None
if _client:
    atexit.register(_library.metric_proxy_release, _client)


def is_available():
    """Does anything here count?"""
    return bool(_client)


def _declare(kind, name, doc, labels):
    if not _client:
        return None
    array = (_Label * len(labels))(*((key.encode(), str(value).encode()) for key, value in labels.items()))
    return getattr(_library, f"metric_proxy_{kind}_new_labels")(_client, name.encode(), doc.encode(), array, len(labels))


class _Counter:
    def __init__(self, handle):
        self._handle = handle

    def inc(self, value=1):
        """Adds `value`, at least 0. A whole number is counted exactly, whatever its size."""
        if not self._handle:
            return
        if isinstance(value, int) and 0 <= value < 2**64:
            _library.metric_proxy_counter_add_u64(self._handle, value)
        else:
            _library.metric_proxy_counter_inc(self._handle, value)


class _Gauge:
    def __init__(self, handle):
        self._handle = handle

    def set(self, value):
        """Replaces the value."""
        if self._handle:
            _library.metric_proxy_gauge_set(self._handle, value)


class _Histogram:
    def __init__(self, handle):
        self._handle = handle

    def observe(self, value):
        """Counts `value` in its bucket."""
        if self._handle:
            _library.metric_proxy_histogram_observe(self._handle, value)


class _Timer:
    """Adds the time within a `with`, of the monotonic clock. One at a time in each `with`; make one a thread to nest them."""

    def __init__(self, handle):
        self._handle = handle
        self._starts = []

    def __enter__(self):
        self._starts.append(time.monotonic_ns())
        return self

    def __exit__(self, *_):
        took_ns = time.monotonic_ns() - self._starts.pop()
        if self._handle:
            _library.metric_proxy_counter_add_u64(self._handle, max(took_ns, 0))


def counter(name, doc="", **labels):
    """A counter; the same name and labels give the same counter everywhere in the process."""
    return _Counter(_declare("counter", name, doc, labels))


def gauge(name, doc="", **labels):
    """A gauge."""
    return _Gauge(_declare("gauge", name, doc, labels))


def histogram(name, doc="", bounds=(0.001, 0.01, 0.1, 1, 10)):
    """A histogram with these upper bounds, ascending, at most 64; one more bucket takes what is above."""
    array = (ctypes.c_double * len(bounds))(*bounds)
    return _Histogram(_library.metric_proxy_histogram_new(_client, name.encode(), doc.encode(), array, len(bounds)) if _client else None)


def timer(name, doc=""):
    """A counter of seconds, for `with`."""
    return _Timer(_library.metric_proxy_timer_new(_client, name.encode(), doc.encode()) if _client else None)
