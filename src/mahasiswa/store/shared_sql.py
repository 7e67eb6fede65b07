"""The SQL that both engines understand. Each engine gives the parts in which they differ."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Literal

from mahasiswa.record import NEAR_FROM, NEAR_TO, SHOWN_MAX_CHARACTERS, Field, Mahasiswa
from mahasiswa.store import folding
from mahasiswa.store.history_items import UNDO_ROWS_MAX
from mahasiswa.store.queries import Query, Suspicion

COUNT = "SELECT count(*) FROM mahasiswa"
DAYS = "SELECT days FROM mahasiswa_history_state"
SIGNING_KEY = "SELECT signing_key FROM mahasiswa_history_state"

TEXTS = ("oleh", "nim", "nama_before", "alamat_before", "nama_after", "alamat_after")
"""The columns of an entry in which a search of the history looks."""


def translated(text: str, letters: str, others: str = "") -> str:
    """The expression of a text with these letters replaced, or removed if there are fewer others."""
    for letter, other in zip_longest(letters, others, fillvalue=""):
        quoted = letter.replace("'", "''")
        text = f"replace({text}, '{quoted}', '{other}')"
    return text


FOLDED_ASCII = translated("lower(t)", folding.REMOVED_ASCII)
NEAR_KEY = f"ltrim({translated('lower(nim)', NEAR_FROM, NEAR_TO)}, '0')"
_IS_IN_CAPITALS = "nama = upper(nama) AND nama <> lower(nama)"


@dataclass(kw_only=True)
class SharedSQL:
    """Statements as one engine writes them."""

    p: str  # a parameter
    is_any: str  # compares with any text of an array, which is one parameter
    is_any_row: str  # compares with any row of a SELECT, which is evaluated once
    as_array: Callable[[Sequence[str]], object]
    raw: Callable[[str], str]  # the expression that reads a text
    lock: str  # locks the records that are found; blank if there is only one writer at a time

    position: str  # the function that finds a text in another one
    matches: str  # whether a pattern of a `Spelling` matches `folded_text` with a space around it
    fold: str  # the text `t` folded, if it is not ASCII
    split: str  # the words of `folded_text`
    # Whether a text has two spaces together, or a character that `tidy` replaces.
    has_odd_spaces: Callable[[str], str]

    begin_batch: str
    end_batch: str
    begin_silent: str  # a batch that keeps no entries
    end_silent: str
    # Adds records, which are one JSON array of arrays, unless another transaction has; returns
    # their nims.
    add_all: str
    update_all: str
    lock_all: str  # keeps every other program from changing records and entries
    lock_item: str  # the end of a SELECT that keeps the item i from being removed
    moment: Callable[[datetime], object]  # a moment as a parameter
    iso: Callable[[str], str]  # the expression of a moment as a text in UTC
    recent: str  # the ids and nims of the newest entries
    is_silent: str  # whether the batch i keeps no entries
    is_expired: str  # whether the item i is too old to be undone
    is_own: str  # whether this transaction has written the item i
    # See Reader.clock. It is time to purge if something is to be noted or purged, and no program has
    # purged within the last minute.
    clock: str
    purge: str  # if it is time

    def __post_init__(self) -> None:
        self._write_records()
        self._write_changes()
        self._write_searches()
        self._write_suspicions()
        self._write_items()
        self._write_filters()
        self._write_entries()
        self._write_undo()
        self._write_nims()

    def _write_records(self) -> None:
        p, is_any, raw = self.p, self.is_any, self.raw
        # Both engines order UTF-8 by bytes, which is the order of code points.
        records = "SELECT nim, nama, alamat FROM mahasiswa"
        self.is_after = f"WHERE nim > {p}"
        self.first = f"{records} ORDER BY nim LIMIT {p}"
        self.after = f"{records} {self.is_after} ORDER BY nim LIMIT {p}"
        # The first of the records after a nim: as many as have that number of bytes, and one more. The
        # lengths are read without the texts, which a window would copy for each record.
        self.within_bytes = f"""
SELECT nim, nama, alamat FROM mahasiswa JOIN (
  SELECT nim, sum(bytes) OVER (ORDER BY nim ROWS UNBOUNDED PRECEDING) - bytes AS bytes_before FROM (
    SELECT nim, octet_length(nama) + octet_length(alamat) AS bytes FROM mahasiswa {{where}}
    ORDER BY nim LIMIT {p}
  ) AS measured
) AS counted USING (nim)
WHERE bytes_before < {p} ORDER BY nim"""
        self.find = f"{records} WHERE nim {is_any}"
        self.find_locked = f"{self.find} {self.lock}"
        self.find_raw = (
            f"SELECT {raw('nim')}, {raw('nama')}, {raw('alamat')} FROM mahasiswa WHERE nim {is_any}"
        )
        cut = f"{raw('nim')}, {raw(shown('nama'))}, {raw(shown('alamat'))}"
        self.find_shown = f"SELECT {cut} FROM mahasiswa WHERE nim {is_any}"
        # Among so many records it takes 20 ms. A longer read would delay the page after each addition.
        self.twin = f"""
SELECT {cut} FROM (SELECT * FROM mahasiswa ORDER BY nim DESC LIMIT 100000) AS newest
WHERE nama = {p} AND alamat = {p} AND nim <> {p} LIMIT 1"""
        self.near = f"SELECT nim FROM mahasiswa WHERE {NEAR_KEY} {is_any} LIMIT {p}"

    def _write_changes(self) -> None:
        p, is_any = self.p, self.is_any
        self.add = f"INSERT INTO mahasiswa (nim, nama, alamat) VALUES ({p}, {p}, {p})"
        self.update = f"UPDATE mahasiswa SET nama = {p}, alamat = {p} WHERE nim = {p}"
        self.delete = f"DELETE FROM mahasiswa WHERE nim {is_any}"
        self.add_renamed = f"""
INSERT INTO mahasiswa (nim, nama, alamat) SELECT {p}, nama, alamat FROM mahasiswa
WHERE nim {is_any} {self.lock} RETURNING 1"""

    def _write_searches(self) -> None:
        p = self.p
        # The text that a search reads, by the field in which it searches.
        texts = {
            "": Mahasiswa._fields,
            "nim": ("replace(nim, ' ', '')",),
            "nama": ("nama",),
            "alamat": ("alamat",),
        }
        self.folded = {
            di: self._folded("nim, nama, alamat", "mahasiswa", text) for di, text in texts.items()
        }
        # The folded beginnings of nims, as a search of a nim finds them.
        self.prefixes = f"""
SELECT substr(folded_text, 1, {p}) AS prefix, count(*) FROM {self.folded["nim"]} GROUP BY prefix ORDER BY prefix LIMIT {p}
"""
        self.first_and_last_nim = f"""
SELECT min(folded_text), max(folded_text) FROM {self.folded["nim"]} WHERE folded_text <> ''
"""
        # The words of the newest names and addresses, the most frequent first. It takes 2 us for each text.
        self.words = f"""
SELECT value FROM (
  SELECT substr(nama, 1, 100) AS folded_text FROM (SELECT nama FROM mahasiswa ORDER BY nim DESC LIMIT {p}) AS names
  UNION ALL SELECT substr(alamat, 1, 100) FROM (SELECT alamat FROM mahasiswa ORDER BY nim DESC LIMIT {p}) AS addresses
) AS newest CROSS JOIN {self.split}
GROUP BY value ORDER BY count(*) DESC, value DESC LIMIT 10000"""

    def _write_suspicions(self) -> None:
        # For each suspicion the nims, and the key that similar records share.
        suspects: Mapping[Suspicion, str] = {
            "near": _sharing(NEAR_KEY),
            "duplicates": _sharing(
                f"lower(trim({beginning('nama')})) || '|' || lower(trim({beginning('alamat')}))"
            ),
            # Records with a name or an address to tidy come first, because nims are not tidied.
            "spaces": f"""
SELECT nim, NOT {self._is_untidy("nama", "alamat")} AS key FROM mahasiswa WHERE {self._is_untidy(*Mahasiswa._fields)}""",
            "length": """
SELECT nim, length(nim) AS key FROM mahasiswa WHERE length(nim) <> (
  SELECT length FROM (SELECT length(nim) AS length, count(*) AS shared FROM mahasiswa GROUP BY length(nim)) AS lengths
  WHERE shared * 10 >= (SELECT count(*) FROM mahasiswa) * 9
)""",
            "capitals": f"""
SELECT nim, '' AS key FROM mahasiswa WHERE {_IS_IN_CAPITALS}
AND (SELECT count(*) FROM mahasiswa WHERE {_IS_IN_CAPITALS}) * 2 < (SELECT count(*) FROM mahasiswa)""",
        }
        self.suspects = {name: self._first_of(select, shown) for name, select in suspects.items()}
        untidy = f"SELECT nim, 0 AS key FROM mahasiswa WHERE {self._is_untidy('nama', 'alamat')}"
        self.untidy = self._first_of(untidy, str)

    def _first_of(self, select: str, text: Callable[[str], str]) -> str:
        """At most so many records of a selection of nims, and in each row the number of all of them.

        `text` gives the expression of each text.
        """
        return f"""
WITH found AS MATERIALIZED ({select})
SELECT (SELECT count(*) FROM found), nim, {text("nama")}, {text("alamat")}
FROM (SELECT nim, key FROM found ORDER BY key, nim LIMIT {self.p}) AS first JOIN mahasiswa USING (nim)
ORDER BY key, nim"""

    def _write_items(self) -> None:
        p, raw, entry = self.p, self.raw, self._entry()
        # An item is an entry without a batch, or the head of a batch. Its row ends with the columns of one entry: of the
        # item itself, or of the only entry of the batch. If the batch changed a nim, these columns are those of the
        # addition, and the column before them is the old nim. Other batches have NULL there, or the entry that `line` finds.
        items = f"""
SELECT i.id, {self.iso("i.moment")}, i.kind, i.rows, {self.is_silent}, {{left}}, {raw("i.oleh")},
  CASE WHEN i.kind = 'nim' THEN (
    SELECT {raw("nim")} FROM mahasiswa_history WHERE batch = i.id AND nama_after IS NULL LIMIT 1
  ) END, {{entry}}
FROM (
  SELECT * FROM mahasiswa_history AS i WHERE batch IS NULL {{where}} ORDER BY id DESC LIMIT {p} OFFSET {p}
) AS i
LEFT JOIN mahasiswa_history AS e ON e.id = CASE
  WHEN i.kind IS NULL THEN i.id
  WHEN i.kind = 'nim' AND i.rows = 2 THEN (
    SELECT id FROM mahasiswa_history WHERE batch = i.id AND nama_after IS NOT NULL LIMIT 1
  )
  WHEN i.rows = 1 THEN (SELECT id FROM mahasiswa_history WHERE batch = i.id)
  {{line}}
END
ORDER BY i.id DESC"""
        is_unchanged = "(m.nama, m.alamat) IS NOT DISTINCT FROM (e.nama_after, e.alamat_after)"
        unchanged = f"FROM mahasiswa_history AS e LEFT JOIN mahasiswa AS m ON m.nim = e.nim WHERE e.batch = {{}} AND {is_unchanged}"
        self.count_unchanged = f"SELECT count(*) {unchanged.format(p)}"
        # More than people undo are not counted.
        left = f"""
CASE WHEN i.rows <= {UNDO_ROWS_MAX} THEN (SELECT count(*) {unchanged.format("i.id")}) ELSE i.rows END"""
        line = f"WHEN i.kind <> 'nim' THEN (SELECT id FROM mahasiswa_history WHERE batch = i.id AND nim = {p} LIMIT 1)"
        self.items = items.format(left=left, line=line, where="{where}", entry=self._entry(shown))
        self.item = items.format(
            left=left,
            line="",
            where=f"AND id = {p} AND NOT {self.is_expired}",
            entry=entry,
        )
        self.head = items.format(
            left=left, line="", where=f"AND id = {p} AND kind IS NOT NULL", entry=entry
        )
        items = items.format(left="i.rows", line="", where="{where}", entry=entry)
        self.count_items = "SELECT count(*) FROM mahasiswa_history WHERE batch IS NULL {where}"
        self.last_item = items.format(where="")

    def _write_filters(self) -> None:
        p = self.p
        self.newest_id = "SELECT coalesce(max(id), 0) FROM mahasiswa_history"
        self.own_item = f"""
SELECT i.id, {self.iso("i.moment")} FROM mahasiswa_history AS i
WHERE i.id > {p} AND i.batch IS NULL AND {self.is_own} ORDER BY i.id DESC LIMIT 1"""
        self.is_of_kind = f""" AND {p} = coalesce(
  kind, CASE WHEN nama_before IS NULL THEN 'add' WHEN nama_after IS NULL THEN 'delete' ELSE 'edit' END)"""
        self.is_of_days = f" AND moment >= {p} AND moment < {p}"
        self.silent = f"""
SELECT i.id, {self.iso("i.moment")}, i.kind, i.rows, true, true, {self.raw("i.oleh")}, NULL, NULL
FROM mahasiswa_history AS i
WHERE i.kind IN ('import', 'restore') AND {self.is_silent} ORDER BY i.id"""

    def _write_entries(self) -> None:
        p = self.p
        # A batch whose head was purged has entries for a while, which are not shown.
        self.in_batch = (
            f"batch = (SELECT id FROM mahasiswa_history WHERE id = {p} AND kind IS NOT NULL)"
        )
        self.oldest = f"SELECT {self.iso('min(moment)')} FROM mahasiswa_history"
        self.count_entries = (
            f"SELECT count(*) FROM mahasiswa_history WHERE {self.in_batch} {{where}}"
        )
        self.entries = f"""
SELECT {self._entry(shown)} FROM mahasiswa_history AS e
WHERE {self.in_batch} {{where}} ORDER BY e.nim LIMIT {p} OFFSET {p}"""
        self.entries_of = f"""
SELECT {self._entry()} FROM mahasiswa_history AS e WHERE e.nim {self.is_any} OR e.batch IN (
  SELECT o.batch FROM mahasiswa_history AS o
  JOIN mahasiswa_history AS head ON head.id = o.batch AND head.kind = 'nim'
  WHERE o.nim {self.is_any}
) ORDER BY e.id"""

    def _write_undo(self) -> None:
        p, raw = self.p, self.raw
        # The kind of a batch, "" for an entry, its rows and its moment. There is no row for a silent
        # batch, a batch that lacks an entry, and an entry of a changed nim, because its two entries
        # can only be undone together.
        self.undoable = f"""
SELECT coalesce(i.kind, ''), i.rows, {self.iso("i.moment")}
FROM mahasiswa_history AS i LEFT JOIN mahasiswa_history AS head ON head.id = i.batch
WHERE i.id = {p} AND NOT {self.is_expired} AND CASE WHEN i.kind IS NOT NULL
  THEN i.rows = (SELECT count(*) FROM mahasiswa_history AS e WHERE e.batch = i.id)
  ELSE i.batch IS NULL OR head.kind <> 'nim'
END"""
        self.lock_record = f"""
SELECT nim FROM mahasiswa WHERE nim = (SELECT nim FROM mahasiswa_history WHERE id = {p}) {self.lock}"""
        self.of_entry, self.of_batch = f"e.id = {p}", f"e.batch = {p}"
        # The entries whose record differs both from its texts after the change and from its texts before the change, and
        # the number of such entries. `half_undone` adds the entries of a batch that was undone in part: the record of
        # this entry is as before the change, and the record of another entry is as after the change.
        # Those of a batch are only shown.
        texts = f"{self._entry()}, {raw('m.nama')}, {raw('m.alamat')}"
        shown_texts = f"{self._entry(shown)}, {raw(shown('m.nama'))}, {raw(shown('m.alamat'))}"
        conflicts = f"""
SELECT count(*) OVER (), {{texts}}
FROM mahasiswa_history AS e LEFT JOIN mahasiswa AS m ON m.nim = e.nim
WHERE {{where}}
AND (m.nama, m.alamat) IS DISTINCT FROM (e.nama_after, e.alamat_after)
AND ((m.nama, m.alamat) IS DISTINCT FROM (e.nama_before, e.alamat_before) {{half_undone}})
ORDER BY e.nim LIMIT {p}"""
        self.entry_conflicts = conflicts.format(where=self.of_entry, texts=texts, half_undone="")
        self.batch_conflicts = conflicts.format(
            where=self.of_batch, texts=shown_texts, half_undone="{half_undone}"
        )
        self.half_undone = """OR EXISTS (
  SELECT 1 FROM mahasiswa_history AS o LEFT JOIN mahasiswa AS r ON r.nim = o.nim
  WHERE o.batch = e.batch AND (r.nama, r.alamat) IS NOT DISTINCT FROM (o.nama_after, o.alamat_after)
)"""

    def _write_nims(self) -> None:
        """What the history has of a nim."""
        is_any, raw = self.is_any, self.raw
        # The ids are chosen first, because an entry may have long texts.
        newest = f"SELECT id FROM {self.recent} AS recent WHERE nim {is_any} ORDER BY id DESC LIMIT"
        self.recent_before = f"""
SELECT {raw("nim")}, {raw("nama_before")}, {raw("alamat_before")} FROM mahasiswa_history
WHERE id IN ({newest} 20) AND nama_before IS NOT NULL ORDER BY id DESC"""
        # The other nim, if the newest change of a nim replaced it.
        self.new_nim = f"""
SELECT {raw("added.nim")} FROM mahasiswa_history AS removed
JOIN mahasiswa_history AS head ON head.id = removed.batch AND head.kind = 'nim'
JOIN mahasiswa_history AS added ON added.batch = head.id AND added.nama_after IS NOT NULL
WHERE removed.id = ({newest} 1) AND removed.nama_after IS NULL"""
        # A batch that loses an entry has one row less, so that the rest can be undone.
        self.leave_batches = f"""
UPDATE mahasiswa_history SET rows = rows - 1
WHERE kind IS NOT NULL AND id IN (SELECT batch FROM mahasiswa_history WHERE nim {is_any})"""
        self.delete_entries = f"DELETE FROM mahasiswa_history WHERE nim {is_any} OR rows = 0"
        self.count_recent = f"SELECT count(*) FROM {self.recent} AS recent WHERE nim = {self.p}"
        self.is_known = f"""
SELECT EXISTS (SELECT 1 FROM mahasiswa WHERE nim {is_any}) OR EXISTS (SELECT 1 FROM mahasiswa_history WHERE nim {is_any})
"""

    def _entry(self, text: Callable[[str], str] = str) -> str:
        """The columns of an entry `e`, as `history_items.entry_of` reads them, with `text` of each text."""
        texts = (self.raw(text(f"e.{column}")) for column in TEXTS)
        return ", ".join(["e.id", self.iso("e.moment"), *texts])

    def array(self, nims: Iterable[str]) -> object:
        """Several nims as one parameter. Nims with NUL are left out, because no record has one."""
        return self.as_array([nim for nim in nims if "\0" not in nim])

    def condition(self, cari: str, di: Field | Literal[""]) -> tuple[str, Sequence[str]]:
        """The condition that finds every term of a search in the folded text `folded_text`, and its parameters."""
        finds = f"{self.position}(folded_text, {self.p}) {'= 1' if di == 'nim' else '> 0'}"
        conditions, parameters = [], []
        for term in folding.terms(cari, is_prefix=di == "nim"):
            spellings = []
            for text, patterns in term:
                # The search for a text is the faster one.
                matches = " OR ".join([self.matches] * len(patterns)) or "true"
                spellings.append(f"{finds} AND ({matches})")
                parameters += [text, *patterns]
            conditions.append(f"({' OR '.join(spellings)})")
        return " AND ".join(conditions) or "false", parameters

    def select_found(self, where: str, query: Query, *, is_shown: bool) -> str:
        """Every record that a clause finds, or every record, in order; with `is_shown` as a page of our own shows it."""
        text = shown if is_shown else str
        source = f"{self.folded[query.di]} {where}" if where else "mahasiswa"
        return f"SELECT nim, {text('nama')}, {text('alamat')} FROM {source} {self._order(query)}"

    def search(self, where: str, query: Query) -> str:
        """One page of the records that a clause finds. Each row also has the number of all records found.

        If the page is empty, one row has the number and no record. The clause is evaluated once. Sorting keys alone takes
        45 ms for the middle of 100,000 records by nama; sorting whole records takes twice as long.
        """
        order = self._order(query)
        keys = "nim" if query.urut == "nim" else f"nim, {query.urut}"
        with_found = (
            f"WITH found AS MATERIALIZED (SELECT {keys} FROM {self.folded[query.di]} {where})"
            if where
            else ""
        )
        source = "found" if where else "mahasiswa"
        return f"""
{with_found}
SELECT total, nim, {shown("nama")}, {shown("alamat")} FROM (SELECT count(*) AS total FROM {source}) AS counted LEFT JOIN (
  SELECT nim, nama, alamat FROM mahasiswa
  WHERE nim IN (SELECT nim FROM {source} {order} LIMIT {self.p} OFFSET {self.p})
) AS page ON true {order}"""

    def count_found(self, conditions: Iterable[str], di: Field | Literal[""]) -> str:
        """The number of records that each of these conditions finds. Each text is folded once."""
        counts = ", ".join(f"count(*) FILTER (WHERE {condition})" for condition in conditions)
        return f"SELECT {counts} FROM {self.folded[di]}"

    def where_item_has(self, where: str) -> str:
        """A condition on an item: `where` finds the folded texts of its entry, or of one of its entries."""
        entries = self._folded("id, batch", "mahasiswa_history", TEXTS)
        return f" AND id {self.is_any_row.format(f'SELECT coalesce(batch, id) FROM {entries} {where}')}"

    def nims(self, where: str) -> str:
        """The nims of records and entries whose folded texts `where` finds."""
        entries = self._folded("nim", "mahasiswa_history WHERE nim IS NOT NULL", TEXTS[1:])
        return f"""
SELECT nim FROM (SELECT nim FROM {self.folded[""]} {where} UNION SELECT nim FROM {entries} {where}) AS found
ORDER BY nim LIMIT {self.p}"""

    def where_entry_has(self, where: str) -> str:
        """The same on an entry of the batch that is the first parameter."""
        return f" AND id IN (SELECT id FROM {self._folded('id', f'mahasiswa_history WHERE {self.in_batch}', TEXTS)} {where})"

    def restore(self, where: str, *, overwrite: bool) -> Sequence[str]:
        """The statements that restore the records of entries, also those that have changed since if `overwrite` is true."""
        unchanged = "" if overwrite else "AND m.nama = e.nama_after AND m.alamat = e.alamat_after"
        deleted = "" if overwrite else "AND e.nama_after IS NULL"
        return (
            f"""
DELETE FROM mahasiswa WHERE nim IN (
  SELECT e.nim FROM mahasiswa_history AS e JOIN mahasiswa AS m ON m.nim = e.nim
  WHERE {where} AND e.nama_before IS NULL {unchanged}
)""",
            f"""
UPDATE mahasiswa AS m SET nama = e.nama_before, alamat = e.alamat_before FROM mahasiswa_history AS e
WHERE {where} AND e.nama_before IS NOT NULL AND e.nim = m.nim {unchanged}""",
            f"""
INSERT INTO mahasiswa (nim, nama, alamat) SELECT e.nim, e.nama_before, e.alamat_before
FROM mahasiswa_history AS e
WHERE {where} AND e.nama_before IS NOT NULL {deleted}
AND NOT EXISTS (SELECT 1 FROM mahasiswa AS m WHERE m.nim = e.nim) ORDER BY e.nim""",
        )

    def _folded(self, columns: str, source: str, texts: Sequence[str]) -> str:
        """A table with these columns, and the folded beginnings of the texts as `folded_text`, with line feeds between them."""
        # Without a limit the engines would fold a text again for each word: ten words take 0.6 s instead of 0.11 s.
        fence = "LIMIT 1000000000000"
        t = f"concat_ws('\n', {', '.join(map(beginning, texts))})"
        unfolded = f"(SELECT {columns}, {t} AS t FROM {source} {fence}) AS unfolded"
        fold = f"CASE WHEN octet_length(t) = length(t) THEN {FOLDED_ASCII} ELSE {self.fold} END"
        return f"(SELECT {columns}, {fold} AS folded_text FROM {unfolded} {fence}) AS folded"

    def _is_untidy(self, *fields: str) -> str:
        """Whether texts have needless spaces. With a space before and after a text, a space at an end of it is double."""
        return self.has_odd_spaces(
            " || '|' || ".join(beginning(f"' ' || {field} || ' '") for field in fields)
        )

    def _order(self, query: Query) -> str:
        """The order of a query. Equal texts are ordered by nim."""
        descending = " DESC" if query.arah == "turun" else ""
        first = "" if query.urut == "nim" else f"lower({query.urut}){descending}, "
        return f"ORDER BY {first}nim{descending}"


def shown(field: str) -> str:
    """The expression of a text as a page of our own shows it."""
    beginning = f"substr({field}, 1, {SHOWN_MAX_CHARACTERS - 1}) || '…'"
    return f"CASE WHEN length({field}) > {SHOWN_MAX_CHARACTERS} THEN {beginning} ELSE {field} END"


def beginning(field: str) -> str:
    return f"substr({field}, 1, {folding.SEARCHED_CHARACTERS})"


def _sharing(key: str) -> str:
    return f"""
    WITH keys AS MATERIALIZED (SELECT nim, {key} AS key FROM mahasiswa)
    SELECT nim, key FROM keys WHERE key IN (SELECT key FROM keys WHERE key <> '' GROUP BY key HAVING count(*) > 1)"""
