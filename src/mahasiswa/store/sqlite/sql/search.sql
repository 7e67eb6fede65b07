-- A search folds texts in the query (`folding`). ASCII texts are folded in SQL, the others by the
-- function `fold` of a reading connection, which also has `sound`. A LIMIT keeps the engine from
-- folding a text again for each word. `instr` takes linear time for any word, which LIKE does not; so
-- does this GLOB, whose stars have one letter between them.

-- name: found
-- The nims of one page of a search in its order, each with the number of all of them. `words` has each
-- word of it: folded, the letters of its sound in their order, and its sound.
WITH words (word, pattern, sound) AS MATERIALIZED (
  SELECT value ->> 0, '*' || replace(value ->> 1, '.*', '*') || '*', value ->> 2
  FROM json_each(:words)
), found AS MATERIALIZED (
  SELECT nim, sorted FROM (
    SELECT nim, sorted, folded_text, substr(folded_text, 1, instr(folded_text, char(10)) - 1) AS folded_name
    FROM (
      SELECT nim, sorted, CASE WHEN octet_length(t) = length(t)
        THEN replace(replace(replace(replace(replace(
          lower(t), '''', ''), '`', ''), '.', ''), ',', ''), '-', '')
        ELSE fold(CAST(t AS BLOB))
      END AS folded_text
      FROM (
        SELECT nim, CASE :urut
            WHEN 'nama' THEN lower(nama) WHEN 'alamat' THEN lower(alamat) ELSE nim
          END AS sorted,
          CASE :di
            WHEN 'nim' THEN char(10) || replace(nim, ' ', '')
            WHEN 'nama' THEN substr(nama, 1, :searched_characters) || char(10)
            WHEN 'alamat' THEN char(10) || substr(alamat, 1, :searched_characters)
            ELSE concat_ws(
              char(10), substr(nama, 1, :searched_characters), nim,
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
      instr(folded_text, word) > 0
      OR (folded_name GLOB pattern AND instr(sound(CAST(folded_name AS BLOB)), sound) > 0)
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
