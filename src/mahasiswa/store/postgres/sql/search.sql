-- A search folds texts in the query (`folding`). Texts that are not ASCII are folded letter by letter,
-- because translate() with the same letters is slower. A LIMIT keeps the engine from folding a text
-- again for each word. `strpos` takes linear time for any word, which LIKE does not. The nested
-- replacements are folding.SOUNDS.

-- name: found
-- The nims of one page of a search in its order, each with the number of all of them. `words` has each
-- word of it: folded, the letters of its sound in their order, and its sound.
WITH words (word, pattern, sound) AS MATERIALIZED (
  SELECT value ->> 0, value ->> 1, value ->> 2 FROM jsonb_array_elements(:words::jsonb) AS value
), found AS MATERIALIZED (
  SELECT nim, sorted FROM (
    SELECT nim, sorted, folded_text, split_part(folded_text, E'\n', 1) AS folded_name
    FROM (
      SELECT nim, sorted, CASE WHEN octet_length(t) = length(t)
        THEN replace(replace(replace(replace(replace(
          lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', '')
        ELSE (
          SELECT string_agg(CASE WHEN c > '~' THEN coalesce(:replacements::jsonb ->> c, c)
            ELSE c END, '')
          FROM unnest(string_to_array(replace(replace(replace(replace(replace(
            lower(normalize(replace(t, '´', ''), NFKC)), '''', ''), '`', ''), '.', ''), ',', ''),
            '-', ''), NULL)) AS c
        )
      END AS folded_text
      FROM (
        SELECT nim, CASE :urut
            WHEN 'nama' THEN lower(nama) WHEN 'alamat' THEN lower(alamat) ELSE nim
          END AS sorted,
          CASE :di
            WHEN 'nim' THEN E'\n' || replace(nim, ' ', '')
            WHEN 'nama' THEN substr(nama, 1, :searched_characters) || E'\n'
            WHEN 'alamat' THEN E'\n' || substr(alamat, 1, :searched_characters)
            ELSE concat_ws(
              E'\n', substr(nama, 1, :searched_characters), nim,
              substr(alamat, 1, :searched_characters)
            )
          END AS t
        FROM mahasiswa
        LIMIT 1000000000000
      ) AS unfolded
      LIMIT 1000000000000
    ) AS whole
    LIMIT 1000000000000
  ) AS folded
  WHERE EXISTS (SELECT 1 FROM words) AND NOT EXISTS (
    SELECT 1 FROM words WHERE NOT (
      strpos(folded_text, word) > 0
      OR (folded_name ~ pattern AND strpos(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(
        ' ' || folded_name,
        'oe', 'u'), 'dj', 'j'), 'tj', 'c'), 'chr', 'kr'), ' ch', ' c'), 'ch', 'h'),
        'kh', 'h'), 'sy', 's'), 'sj', 's'), 'th', 't'), 'dh', 'd'), 'ph', 'f'), 'z', 's'),
        'v', 'f'), 'q', 'k'), 'iy', 'i'), 'y', 'i'), 'ii', 'i'), 'ie', 'i'), 'll', 'l'),
        'mm', 'm'), 'nn', 'n'), 'ss', 's'), 'ff', 'f'), 'tt', 't'), sound) > 0)
    )
  )
)
SELECT total, nim FROM (SELECT count(*) AS total FROM found) AS counted LEFT JOIN (
  SELECT nim, sorted FROM found
  ORDER BY CASE :arah WHEN 'naik' THEN sorted END, CASE :arah WHEN 'naik' THEN nim END,
    sorted DESC, nim DESC
  LIMIT :limit OFFSET :offset
) AS page ON true
ORDER BY CASE :arah WHEN 'naik' THEN sorted END, CASE :arah WHEN 'naik' THEN nim END,
  sorted DESC, nim DESC
