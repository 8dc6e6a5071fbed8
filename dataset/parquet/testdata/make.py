"""Makes the files of this folder: one table in the encodings and codecs that pyarrow writes.

    python -m venv venv
    venv/bin/pip install numpy==2.4.6 pyarrow==26.0.1
    venv/bin/python make.py

parquet_test.go has the values of the table.
"""

import decimal
import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent
N = 300
rows = range(N)
table = pa.table({
    "real": pa.array([i * 0.5 - 20 for i in rows], pa.float64()),
    "single": pa.array([None if i % 13 == 0 else i / 4 for i in rows], pa.float32()),
    "half": pa.array([np.float16(i / 8) for i in rows], pa.float16()),
    "small": pa.array([i % 100 - 50 for i in rows], pa.int8()),
    "int": pa.array([None if i % 11 == 0 else i * i * (-1) ** i for i in rows], pa.int32()),
    "long": pa.array([(i - 7) * 10**15 for i in rows], pa.int64()),
    "huge": pa.array([2**63 + i for i in rows], pa.uint64()),
    "bool": pa.array([i % 3 == 0 for i in rows], pa.bool_()),
    "text": pa.array([None if i % 7 == 0 else f"kind {i % 5}" for i in rows]),
    "word": pa.array([f"common prefix {i:05d}" for i in rows]),
    "cents": pa.array([decimal.Decimal(i * 125 - 500).scaleb(-2) for i in rows], pa.decimal128(12, 2)),
    "list": pa.array([[i, i + 0.25, None] for i in rows], pa.list_(pa.float32(), 3)),
    "point": pa.array([{"x": i, "y": None if i % 2 else i / 2} for i in rows], pa.struct([("x", pa.int64()), ("y", pa.float64())])),
    "when": pa.array([i * 10**6 for i in rows], pa.timestamp("us")),
    "void": pa.nulls(N),
    "ragged": pa.array([["a"] * (i % 3) for i in rows], pa.list_(pa.string())),
})


def write(name, **options):
    pq.write_table(table, HERE / (name + ".parquet"), **{"row_group_size": 128, **options})


for codec in "none", "snappy", "gzip", "brotli", "zstd", "lz4":
    write(codec, compression=codec)
write("plain", compression="none", use_dictionary=False, data_page_size=256, write_page_checksum=True)
write("version2", data_page_version="2.0", data_page_size=256)
write("encodings", use_dictionary=False, data_page_version="2.0", column_encoding={
    "real": "BYTE_STREAM_SPLIT", "single": "BYTE_STREAM_SPLIT", "half": "BYTE_STREAM_SPLIT", "int": "DELTA_BINARY_PACKED",
    "long": "DELTA_BINARY_PACKED", "bool": "RLE", "text": "DELTA_LENGTH_BYTE_ARRAY", "word": "DELTA_BYTE_ARRAY",
    "cents": "DELTA_BYTE_ARRAY"})
