"""Writes pickles as Python 2 with the NumPy and SciPy of its day did."""

import io
import pickle
import struct

import numpy as np
import scipy.sparse


def dump_like_python2(value) -> bytes:
    """A protocol-2 pickle with Python 2's byte strings and module names."""
    out = io.BytesIO()
    out.write(b"\x80\x02")
    _write(out, value)
    out.write(b".")
    return out.getvalue()


def _write(out, value):
    if isinstance(value, np.ndarray):
        _array(out, value)
    elif isinstance(value, scipy.sparse.csr_matrix):
        _matrix(out, value)
    elif hasattr(value, "default_factory"):
        out.write(b"ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R")
        _items(out, value)
    elif type(value) is dict:
        out.write(b"}")
        _items(out, value)
    elif isinstance(value, tuple):
        out.write(b"(")
        for item in value:
            _write(out, item)
        out.write(b"t")
    elif isinstance(value, bytes):
        out.write(b"T" + struct.pack("<i", len(value)) + value)
    elif isinstance(value, str):
        _write(out, value.encode("latin1"))
    else:  # numbers, None and lists look the same in every Python
        out.write(_plain(value))


def _plain(value) -> bytes:
    return pickle.dumps(value, protocol=2)[2:-1]


def _items(out, mapping):
    for key, value in mapping.items():
        _write(out, key)
        _write(out, value)
        out.write(b"s")


def _array(out, array):
    out.write(b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01")
    out.write(b"".join(_plain(int(n)) for n in array.shape))
    out.write({1: b"\x85", 2: b"\x86"}[array.ndim])
    code = array.dtype.str[1:].encode()
    out.write(b"cnumpy\ndtype\nU" + bytes([len(code)]) + code + b"K\x00K\x01\x87R")
    out.write(b"(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89")
    _write(out, array.tobytes())
    out.write(b"tb")


def _matrix(out, matrix):
    out.write(b"cscipy.sparse.csr\ncsr_matrix\n)\x81}")
    state = {
        "format": "csr",
        "_shape": tuple(int(n) for n in matrix.shape),
        "indptr": matrix.indptr,
        "indices": matrix.indices,
        "data": matrix.data,
        "maxprint": 50,
    }
    _items(out, state)
    out.write(b"b")
