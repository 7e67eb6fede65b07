"""The SQL that finds records that may be wrong, for both engines."""

from collections.abc import Mapping

from mahasiswa.store import Suspicion, folding

_IS_IN_CAPITALS = "nama = upper(nama) AND nama <> lower(nama)"


def beginning(field: str) -> str:
    """The expression of the beginning of a text, which is checked."""
    return f"substr({field}, 1, {folding.SEARCHED_CHARACTERS})"


def statements(near_key: str, untidy: str, placeholder: str) -> Mapping[Suspicion, str]:
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
