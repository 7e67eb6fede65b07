"""The SQL that both engines understand: of reads in order, of imports, and of records that may be wrong."""

from collections.abc import Mapping

from mahasiswa.store import folding
from mahasiswa.store.reader import Query, Suspicion

# The first of these records: as many as have that number of bytes, and one more.
WITHIN_BYTES = """
SELECT nim, nama, alamat FROM (
  SELECT *, sum(bytes) OVER (ORDER BY nim ROWS UNBOUNDED PRECEDING) - bytes AS bytes_before
  FROM (SELECT *, octet_length(nama) + octet_length(alamat) AS bytes FROM ({records}) AS records) AS measured
) AS counted
WHERE bytes_before < {p} ORDER BY nim
"""

# The rows of an imported file are in the temporary table `incoming`.
INCOMPLETE = """
SELECT number FROM incoming AS i
WHERE (nama IS NULL OR alamat IS NULL) AND NOT EXISTS (SELECT 1 FROM mahasiswa AS m WHERE m.nim = i.nim)
ORDER BY number
"""
COMPARE = """
SELECT count(*), count(m.nim), count(*) FILTER (
  WHERE coalesce(i.nama, m.nama) <> m.nama OR coalesce(i.alamat, m.alamat) <> m.alamat
)
FROM incoming AS i LEFT JOIN mahasiswa AS m ON m.nim = i.nim
"""
UPDATE = """
UPDATE mahasiswa AS m SET nama = coalesce(i.nama, m.nama), alamat = coalesce(i.alamat, m.alamat)
FROM incoming AS i
WHERE i.nim = m.nim AND (coalesce(i.nama, m.nama) <> m.nama OR coalesce(i.alamat, m.alamat) <> m.alamat)
"""
INSERT = """
INSERT INTO mahasiswa (nim, nama, alamat)
SELECT nim, nama, alamat FROM incoming AS i
WHERE NOT EXISTS (SELECT 1 FROM mahasiswa AS m WHERE m.nim = i.nim)
ORDER BY nim
"""

_IS_IN_CAPITALS = "nama = upper(nama) AND nama <> lower(nama)"


def beginning(field: str) -> str:
    """The expression of the beginning of a text, which is checked."""
    return f"substr({field}, 1, {folding.SEARCHED_CHARACTERS})"


def order(query: Query, key: str) -> str:
    """The order of a query. `key` has the expression by which texts are ordered; equal texts are ordered by nim."""
    descending = " DESC" if query.arah == "turun" else ""
    first = "" if query.urut == "nim" else f"{key.format(query.urut)}{descending}, "
    return f"ORDER BY {first}nim{descending}"


def suspects(near_key: str, untidy: str, placeholder: str) -> Mapping[Suspicion, str]:
    """For each suspicion a statement with the parameter of a limit: the number of all, and a record, in each row.

    `near_key` is the expression of `record.near_key`, and `untidy` selects the nims of texts with needless spaces.
    """
    found: Mapping[Suspicion, str] = {
        "near": _sharing(near_key),
        "twins": _sharing(f"lower(trim({beginning('nama')})) || '|' || lower(trim({beginning('alamat')}))"),
        "spaces": untidy,
        "length": """
        SELECT nim, length(nim) AS key FROM mahasiswa WHERE length(nim) <> (
          SELECT length FROM (SELECT length(nim) AS length, count(*) AS shared FROM mahasiswa GROUP BY length(nim)) AS lengths
          WHERE shared * 10 >= (SELECT count(*) FROM mahasiswa) * 9
        )""",
        "capitals": f"""
        SELECT nim, '' AS key FROM mahasiswa WHERE {_IS_IN_CAPITALS}
        AND (SELECT count(*) FROM mahasiswa WHERE {_IS_IN_CAPITALS}) * 2 < (SELECT count(*) FROM mahasiswa)""",
    }
    return {
        suspicion: f"""
        WITH found AS MATERIALIZED ({select})
        SELECT (SELECT count(*) FROM found), nim, nama, alamat
        FROM (SELECT nim, key FROM found ORDER BY key, nim LIMIT {placeholder}) AS first JOIN mahasiswa USING (nim)
        ORDER BY key, nim
        """
        for suspicion, select in found.items()
    }


def _sharing(key: str) -> str:
    """The nims of records that share this key with another one."""
    return f"""
    WITH keys AS MATERIALIZED (SELECT nim, {key} AS key FROM mahasiswa)
    SELECT nim, key FROM keys WHERE key IN (SELECT key FROM keys WHERE key <> '' GROUP BY key HAVING count(*) > 1)"""
