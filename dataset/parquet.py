"""Writing one table of an export: row groups of a bounded size, page index on."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from dataset.rows import Row

ROW_GROUP_BYTES = 64 << 20
"""Uncompressed. Readers that page through a table, such as the Hub's viewer, refuse groups of some hundred MB."""


class TableWriter:
    """Writes rows of one schema to ``<folder>/train-00000.parquet``. Raises `OSError` for the disk's troubles."""

    def __init__(self, folder: Path, schema: pa.Schema, row_group_bytes: int = ROW_GROUP_BYTES) -> None:
        self.rows = 0
        self._schema, self._limit_bytes = schema, row_group_bytes
        self._pending: list[Row] = []
        self._pending_bytes = 0
        self._path = folder / "train-00000.parquet"
        self._writer: Any = None

    def write(self, row: Row) -> None:
        """Add one row. A column that the row lacks is null."""
        row_bytes = _size_bytes(row)
        if self._pending and self._pending_bytes + row_bytes > self._limit_bytes:
            self._flush()
        self._pending.append(row)
        self._pending_bytes += row_bytes
        self.rows += 1

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True)
        self._writer = pq.ParquetWriter(self._path, self._schema, compression="zstd", write_page_index=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if kind is None:
                self._flush()
        finally:
            self._writer.close()

    def _flush(self) -> None:
        # An empty table gets no row group at all: `datasets` cannot load a row group of no rows.
        if self._pending:
            table = pa.Table.from_pylist(self._pending, schema=self._schema)
            self._writer.write_table(table, row_group_size=table.num_rows)
        self._pending, self._pending_bytes = [], 0


def _size_bytes(value: Any) -> int:
    match value:
        case str():
            return len(value.encode())
        case list():
            return sum(map(_size_bytes, value))
        case dict():
            return sum(map(_size_bytes, value.values()))
        case _:
            return 8
