CREATE FUNCTION version_1.mahasiswa_history_purge(is_timed boolean) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'version_1', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
  now_here timestamptz := clock_timestamp();
  soon timestamptz := now_here + interval '1 minute';
  state record;
BEGIN
  SELECT * INTO state FROM mahasiswa_history_state;
  IF state.noted > soon OR state.noted <= now_here - interval '1 day'
    OR (is_timed AND NOT state.has_leapt AND state.noted <= now_here - interval '60 s')
  THEN
    -- Of several processes one notes it, and the others purge later.
    PERFORM FROM mahasiswa_history_state WHERE noted = state.noted FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
      RETURN;
    END IF;
    UPDATE mahasiswa_history_state
    SET noted = now_here, has_leapt = NOT has_leapt AND noted <= now_here - interval '2 days'
    RETURNING * INTO state;
  ELSIF is_timed THEN
    RETURN;
  END IF;
  IF state.has_leapt THEN
    RETURN;
  END IF;
  -- The head of a batch goes before its entries, so a batch is never shown in part.
  DELETE FROM mahasiswa_history WHERE id IN (
    SELECT id FROM mahasiswa_history WHERE moment < now_here - make_interval(days => state.days)
    ORDER BY moment, id LIMIT 100 FOR UPDATE SKIP LOCKED
  );
  UPDATE mahasiswa_history SET moment = now_here WHERE id IN (
    SELECT id FROM mahasiswa_history WHERE moment > soon
    ORDER BY moment DESC, id LIMIT 100 FOR UPDATE SKIP LOCKED
  );
END $$;
CREATE FUNCTION version_1.mahasiswa_history_refuse() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  RAISE EXCEPTION 'TRUNCATE would leave no trace in the history of mahasiswa; use DELETE FROM mahasiswa'
  USING ERRCODE = 'feature_not_supported';
END $$;
CREATE FUNCTION version_1.mahasiswa_history_write() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'version_1', 'pg_temp'
    AS $$
DECLARE
  now_here timestamptz := clock_timestamp();
  batch_kind text := nullif(current_setting('mahasiswa.batch', true), '');
  batch_id bigint := nullif(current_setting('mahasiswa.batch_id', true), '')::bigint;
  -- The names that NAME sets: of the person who makes all changes, or of each person by nim.
  names jsonb := nullif(current_setting('mahasiswa.oleh', true), '')::jsonb;
  everyone text := CASE WHEN jsonb_typeof(names) = 'string' THEN names #>> ARRAY[]::text[] END;
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
    SELECT now_here, batch_id, coalesce(everyone, names ->> nim), nim, nama, alamat FROM new_rows;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO mahasiswa_history (moment, batch, oleh, nim, nama_before, alamat_before)
    SELECT now_here, batch_id, everyone, nim, nama, alamat FROM old_rows;
  ELSE
    -- The plan is that of the connection's first call. If that had one row, a JOIN is a nested loop,
    -- which takes 15 s for 10,000 rows. A FULL JOIN never is one.
    INSERT INTO mahasiswa_history (
      moment, batch, oleh, nim, nama_before, alamat_before, nama_after, alamat_after
    )
    SELECT now_here, batch_id, everyone, nim, o.nama, o.alamat, n.nama, n.alamat
    FROM old_rows AS o FULL JOIN new_rows AS n USING (nim)
    WHERE (o.nama, o.alamat) IS DISTINCT FROM (n.nama, n.alamat);
  END IF;
  GET DIAGNOSTICS changed = ROW_COUNT;
  IF changed = 0 THEN
    RETURN NULL;
  END IF;
  IF batch_kind IS NOT NULL THEN
    INSERT INTO mahasiswa_history AS h (id, moment, kind, rows, is_silent, oleh)
    VALUES (batch_id, now_here, batch_kind, changed, has_no_entries, everyone)
    ON CONFLICT (id) DO UPDATE SET rows = h.rows + excluded.rows;
    PERFORM set_config('mahasiswa.batch_id', batch_id::text, true);
  END IF;
  PERFORM mahasiswa_history_purge(false);
  RETURN NULL;
END $$;
CREATE FUNCTION version_1.mahasiswa_nim_refuse() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  RAISE EXCEPTION 'a nim never changes; delete the record and add it with the other nim'
  USING ERRCODE = 'feature_not_supported';
END $$;
COMMENT ON FUNCTION version_1.mahasiswa_nim_refuse() IS '946c146f0cf37973d4522b3624f8ae38c29322c9bae7beb3893009538a291f42';
CREATE TABLE version_1.mahasiswa (
    nim text NOT NULL COLLATE pg_catalog."C",
    nama text NOT NULL COLLATE pg_catalog."C",
    alamat text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT nim_too_long CHECK ((length(nim) <= 255)),
    CONSTRAINT nim_unaddressable CHECK ((nim <> ALL (ARRAY['.'::text, '..'::text])))
);
ALTER TABLE ONLY version_1.mahasiswa ALTER COLUMN nim SET STATISTICS 0;
ALTER TABLE ONLY version_1.mahasiswa ALTER COLUMN nama SET STATISTICS 0;
ALTER TABLE ONLY version_1.mahasiswa ALTER COLUMN alamat SET STATISTICS 0;
COMMENT ON TABLE version_1.mahasiswa IS 'schema 1 of mahasiswa';
CREATE TABLE version_1.mahasiswa_history (
    id bigint NOT NULL,
    moment timestamp with time zone NOT NULL,
    batch bigint,
    kind text,
    rows bigint,
    is_silent boolean,
    oleh text COLLATE pg_catalog."C",
    nim text COLLATE pg_catalog."C",
    nama_before text COLLATE pg_catalog."C",
    alamat_before text COLLATE pg_catalog."C",
    nama_after text COLLATE pg_catalog."C",
    alamat_after text COLLATE pg_catalog."C",
    CONSTRAINT mahasiswa_history_kind_check CHECK ((kind = ANY (ARRAY['import'::text, 'delete'::text, 'undo'::text, 'restore'::text, 'nim'::text, 'tidy'::text])))
);
ALTER TABLE ONLY version_1.mahasiswa_history ALTER COLUMN kind SET STATISTICS 0;
ALTER TABLE ONLY version_1.mahasiswa_history ALTER COLUMN oleh SET STATISTICS 0;
ALTER TABLE ONLY version_1.mahasiswa_history ALTER COLUMN nim SET STATISTICS 0;
ALTER TABLE ONLY version_1.mahasiswa_history ALTER COLUMN nama_before SET STATISTICS 0;
ALTER TABLE ONLY version_1.mahasiswa_history ALTER COLUMN alamat_before SET STATISTICS 0;
ALTER TABLE ONLY version_1.mahasiswa_history ALTER COLUMN nama_after SET STATISTICS 0;
ALTER TABLE ONLY version_1.mahasiswa_history ALTER COLUMN alamat_after SET STATISTICS 0;
ALTER TABLE version_1.mahasiswa_history ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME version_1.mahasiswa_history_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE version_1.mahasiswa_history_state (
    only_row boolean DEFAULT true NOT NULL,
    days integer,
    signing_key text DEFAULT replace(((gen_random_uuid())::text || (gen_random_uuid())::text), '-'::text, ''::text) NOT NULL,
    noted timestamp with time zone DEFAULT now() NOT NULL,
    has_leapt boolean DEFAULT false NOT NULL,
    CONSTRAINT mahasiswa_history_state_only_row_check CHECK (only_row)
);
INSERT INTO version_1.mahasiswa VALUES ('20/456839/TK/50663', 'Nur''aini É', 'Sleman');
INSERT INTO version_1.mahasiswa VALUES ('2300018001', 'Siti Aminah', 'Bantul');
INSERT INTO version_1.mahasiswa VALUES ('3', 'Budi', 'Solo');
INSERT INTO version_1.mahasiswa_history VALUES (1, '2026-11-23 21:04:00.652449+00', NULL, NULL, NULL, NULL, NULL, '2300018001', NULL, NULL, 'Siti Aminah', 'Jalan Kaliurang 5');
INSERT INTO version_1.mahasiswa_history VALUES (2, '2026-11-23 21:04:00.680531+00', NULL, NULL, NULL, NULL, NULL, '20/456839/TK/50663', NULL, NULL, 'Nur''aini É', 'Sleman');
INSERT INTO version_1.mahasiswa_history VALUES (3, '2026-11-23 21:04:00.691999+00', NULL, NULL, NULL, NULL, NULL, '2300018001', 'Siti Aminah', 'Jalan Kaliurang 5', 'Siti Aminah', 'Bantul');
INSERT INTO version_1.mahasiswa_history VALUES (6, '2026-11-23 21:04:00.722435+00', 5, NULL, NULL, NULL, NULL, '3', NULL, NULL, 'Budi', 'Solo');
INSERT INTO version_1.mahasiswa_history VALUES (7, '2026-11-23 21:04:00.722435+00', 5, NULL, NULL, NULL, NULL, '4', NULL, NULL, 'Ani', 'Klaten');
INSERT INTO version_1.mahasiswa_history VALUES (5, '2026-11-23 21:04:00.722435+00', NULL, 'import', 2, false, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO version_1.mahasiswa_history VALUES (8, '2026-11-23 21:04:00.733723+00', NULL, NULL, NULL, NULL, NULL, '4', 'Ani', 'Klaten', NULL, NULL);
INSERT INTO version_1.mahasiswa_history_state VALUES (true, 36500, 'f48314b3940846cebd3074db78e69ce8520879e0c86b4ea18aa2489f29ea3ec9', '2026-11-23 21:04:00.566204+00', false);
SELECT pg_catalog.setval('version_1.mahasiswa_history_id_seq', 8, true);
ALTER TABLE ONLY version_1.mahasiswa_history
    ADD CONSTRAINT mahasiswa_history_pkey PRIMARY KEY (id);
ALTER TABLE ONLY version_1.mahasiswa_history_state
    ADD CONSTRAINT mahasiswa_history_state_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY version_1.mahasiswa
    ADD CONSTRAINT nim_duplicate PRIMARY KEY (nim);
CREATE UNIQUE INDEX mahasiswa_history_batches ON version_1.mahasiswa_history USING btree (batch, nim) WHERE (batch IS NOT NULL);
CREATE INDEX mahasiswa_history_items ON version_1.mahasiswa_history USING btree (id) WHERE (batch IS NULL);
CREATE INDEX mahasiswa_history_moment ON version_1.mahasiswa_history USING btree (moment, id);
CREATE INDEX mahasiswa_history_nim ON version_1.mahasiswa_history USING btree (nim, id);
CREATE TRIGGER mahasiswa_history_delete AFTER DELETE ON version_1.mahasiswa REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION version_1.mahasiswa_history_write();
CREATE TRIGGER mahasiswa_history_insert AFTER INSERT ON version_1.mahasiswa REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION version_1.mahasiswa_history_write();
CREATE TRIGGER mahasiswa_history_truncate BEFORE TRUNCATE ON version_1.mahasiswa FOR EACH STATEMENT EXECUTE FUNCTION version_1.mahasiswa_history_refuse();
CREATE TRIGGER mahasiswa_history_update AFTER UPDATE ON version_1.mahasiswa REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION version_1.mahasiswa_history_write();
CREATE TRIGGER mahasiswa_nim BEFORE UPDATE OF nim ON version_1.mahasiswa FOR EACH ROW WHEN ((new.nim <> old.nim)) EXECUTE FUNCTION version_1.mahasiswa_nim_refuse();
