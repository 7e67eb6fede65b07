-- Specification 2.2: a nim never changes. The table refuses it without a history too.
CREATE OR REPLACE FUNCTION mahasiswa_nim_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'a nim never changes; delete the record and add it with the other nim'
  USING ERRCODE = 'feature_not_supported';
END $$;

DROP TRIGGER IF EXISTS mahasiswa_nim ON mahasiswa;
CREATE TRIGGER mahasiswa_nim BEFORE UPDATE OF nim ON mahasiswa
  FOR EACH ROW WHEN (NEW.nim <> OLD.nim) EXECUTE FUNCTION mahasiswa_nim_refuse();
