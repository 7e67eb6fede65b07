-- The parts of the searches. A search folds texts in the query (`folding`). Texts that are not ASCII
-- are folded letter by letter, because translate() with the same letters is slower. A LIMIT keeps the
-- engine from folding a text again for each word. `strpos` takes linear time for any word, which LIKE
-- does not.

-- name: WORDS
-- Each word of a search: folded, the letters of its sound in their order, and its sound.
words (search, word, pattern, sound) AS MATERIALIZED (
  SELECT (value ->> 0)::integer, value ->> 1, value ->> 2, value ->> 3
  FROM jsonb_array_elements(:words::jsonb) AS value
)

-- name: FOUND
found AS MATERIALIZED (
  SELECT searches.search, nim, nama, alamat FROM (
    SELECT nim, nama, alamat, folded_text,
      split_part(folded_text, E'\n', 1) AS folded_name
    FROM (
      SELECT nim, nama, alamat, CASE WHEN octet_length(t) = length(t)
        THEN replace(replace(replace(replace(replace(
          lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', '')
        ELSE (
          SELECT string_agg(CASE WHEN c > '~' THEN coalesce(jsonb :REPLACEMENTS ->> c, c)
            ELSE c END, '')
          FROM unnest(string_to_array(replace(replace(replace(replace(replace(
            lower(normalize(replace(t, '´', ''), NFKC)), '''', ''), '`', ''), '.', ''), ',', ''),
            '-', ''), NULL)) AS c
        )
      END AS folded_text
      FROM (
        SELECT nim, nama, alamat, CASE :di
          WHEN 'nim' THEN E'\n' || replace(nim, ' ', '')
          WHEN 'nama' THEN substr(nama, 1, :SEARCHED_CHARACTERS) || E'\n'
          WHEN 'alamat' THEN E'\n' || substr(alamat, 1, :SEARCHED_CHARACTERS)
          ELSE concat_ws(
            E'\n', substr(nama, 1, :SEARCHED_CHARACTERS), nim,
            substr(alamat, 1, :SEARCHED_CHARACTERS)
          )
        END AS t
        FROM mahasiswa
        LIMIT 1000000000000
      ) AS unfolded
      LIMIT 1000000000000
    ) AS whole
    LIMIT 1000000000000
  ) AS folded CROSS JOIN (SELECT DISTINCT search FROM words) AS searches
  WHERE NOT EXISTS (
    SELECT 1 FROM words WHERE words.search = searches.search AND NOT (
      strpos(folded_text, word) > 0
      OR (folded_name ~ pattern AND strpos(:SOUND_OF_FOLDED_NAME, sound) > 0)
    )
  )
)

-- name: FOUND_ENTRIES
-- Entries, and the heads of batches by the name of a person: all, or those of one batch.
found_entries AS MATERIALIZED (
  SELECT searches.search, id, batch, nim FROM (
    SELECT id, batch, nim, folded_text,
      split_part(folded_text, E'\n', 1) AS folded_name
    FROM (
      SELECT id, batch, nim, CASE WHEN octet_length(t) = length(t)
        THEN replace(replace(replace(replace(replace(
          lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', '')
        ELSE (
          SELECT string_agg(CASE WHEN c > '~' THEN coalesce(jsonb :REPLACEMENTS ->> c, c)
            ELSE c END, '')
          FROM unnest(string_to_array(replace(replace(replace(replace(replace(
            lower(normalize(replace(t, '´', ''), NFKC)), '''', ''), '`', ''), '.', ''), ',', ''),
            '-', ''), NULL)) AS c
        )
      END AS folded_text
      FROM (
        SELECT id, batch, nim, concat_ws(
          E'\n',
          concat_ws(
            '  ', substr(nama_before, 1, :SEARCHED_CHARACTERS),
            substr(nama_after, 1, :SEARCHED_CHARACTERS)
          ),
          nim, substr(oleh, 1, :SEARCHED_CHARACTERS),
          substr(alamat_before, 1, :SEARCHED_CHARACTERS),
          substr(alamat_after, 1, :SEARCHED_CHARACTERS)
        ) AS t
        FROM mahasiswa_history WHERE :batch IS NULL OR batch = :batch
        LIMIT 1000000000000
      ) AS unfolded
      LIMIT 1000000000000
    ) AS whole
    LIMIT 1000000000000
  ) AS folded CROSS JOIN (SELECT DISTINCT search FROM words) AS searches
  WHERE NOT EXISTS (
    SELECT 1 FROM words WHERE words.search = searches.search AND NOT (
      strpos(folded_text, word) > 0
      OR (folded_name ~ pattern AND strpos(:SOUND_OF_FOLDED_NAME, sound) > 0)
    )
  )
)

-- name: vocabulary
-- The words of the names and addresses at both ends of the list, the most frequent first.
SELECT value FROM (
  SELECT substr(text, 1, 100) AS text FROM (
    SELECT * FROM (SELECT nama AS text FROM mahasiswa ORDER BY nim LIMIT :names / 2) AS low_names
    UNION ALL
    SELECT * FROM (SELECT nama FROM mahasiswa ORDER BY nim DESC LIMIT :names / 2) AS high_names
    UNION ALL
    SELECT * FROM (
      SELECT alamat FROM mahasiswa ORDER BY nim LIMIT :addresses / 2
    ) AS low_addresses
    UNION ALL
    SELECT * FROM (
      SELECT alamat FROM mahasiswa ORDER BY nim DESC LIMIT :addresses / 2
    ) AS high_addresses
  ) AS texts
) AS both_ends CROSS JOIN unnest(string_to_array(text, ' ')) AS value
GROUP BY value ORDER BY count(*) DESC, value DESC LIMIT 10000
