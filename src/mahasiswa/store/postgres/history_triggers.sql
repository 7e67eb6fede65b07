-- The triggers that write the history. They run with the rights of the owner of the tables, because
-- a role that may only insert records must not be able to write the history.

DROP FUNCTION IF EXISTS mahasiswa_history_purge(boolean); -- of an earlier release

CREATE OR REPLACE FUNCTION mahasiswa_history_write() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  now_here timestamptz := clock_timestamp();
  batch_kind text := nullif(current_setting('mahasiswa.batch', true), '');
  batch_id bigint := nullif(current_setting('mahasiswa.batch_id', true), '')::bigint;
  person text := nullif(current_setting('mahasiswa.oleh', true), '');
  has_no_entries boolean := coalesce(current_setting('mahasiswa.silent', true), '') = 'on';
  changed bigint;
BEGIN
  IF batch_kind IS NOT NULL AND batch_id IS NULL THEN
    batch_id := nextval('mahasiswa_history_id_seq');
  END IF;
  IF has_no_entries AND TG_OP = 'DELETE' THEN
    PERFORM FROM old_rows;
  ELSIF has_no_entries THEN
    PERFORM FROM new_rows;
  ELSIF TG_OP = 'INSERT' THEN
    INSERT INTO mahasiswa_history (moment, batch, oleh, nim, nama_after, alamat_after)
    SELECT now_here, batch_id, person, nim, nama, alamat FROM new_rows;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO mahasiswa_history (moment, batch, oleh, nim, nama_before, alamat_before)
    SELECT now_here, batch_id, person, nim, nama, alamat FROM old_rows;
  ELSE
    -- The plan is that of the connection's first call. If that had one row, a JOIN is a nested loop,
    -- which is slow for many rows. A FULL JOIN never is one.
    INSERT INTO mahasiswa_history (
      moment, batch, oleh, nim, nama_before, alamat_before, nama_after, alamat_after
    )
    SELECT now_here, batch_id, person, nim, o.nama, o.alamat, n.nama, n.alamat
    FROM old_rows AS o FULL JOIN new_rows AS n USING (nim)
    WHERE (o.nama, o.alamat) IS DISTINCT FROM (n.nama, n.alamat);
  END IF;
  GET DIAGNOSTICS changed = ROW_COUNT;
  IF changed = 0 THEN
    RETURN NULL;
  END IF;
  IF batch_kind IS NOT NULL THEN
    INSERT INTO mahasiswa_history AS h (id, moment, kind, rows, is_silent, oleh)
    VALUES (batch_id, now_here, batch_kind, changed, has_no_entries, person)
    ON CONFLICT (id) DO UPDATE SET rows = h.rows + excluded.rows;
    PERFORM set_config('mahasiswa.batch_id', batch_id::text, true);
  END IF;
  RETURN NULL;
END $$;
REVOKE EXECUTE ON FUNCTION mahasiswa_history_write() FROM PUBLIC;

CREATE OR REPLACE FUNCTION mahasiswa_history_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'TRUNCATE would leave no trace in the history of mahasiswa; use DELETE FROM mahasiswa'
  USING ERRCODE = 'feature_not_supported';
END $$;

DROP TRIGGER IF EXISTS mahasiswa_history_insert ON mahasiswa;
CREATE TRIGGER mahasiswa_history_insert AFTER INSERT ON mahasiswa
  REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION mahasiswa_history_write();
DROP TRIGGER IF EXISTS mahasiswa_history_update ON mahasiswa;
CREATE TRIGGER mahasiswa_history_update AFTER UPDATE ON mahasiswa
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION mahasiswa_history_write();
DROP TRIGGER IF EXISTS mahasiswa_history_delete ON mahasiswa;
CREATE TRIGGER mahasiswa_history_delete AFTER DELETE ON mahasiswa
  REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION mahasiswa_history_write();
DROP TRIGGER IF EXISTS mahasiswa_history_truncate ON mahasiswa;
CREATE TRIGGER mahasiswa_history_truncate BEFORE TRUNCATE ON mahasiswa
  FOR EACH STATEMENT EXECUTE FUNCTION mahasiswa_history_refuse();
