-- Specification 2.2: a nim never changes. The table refuses it without a history too.
CREATE TRIGGER mahasiswa_nim BEFORE UPDATE OF nim ON mahasiswa WHEN NEW.nim <> OLD.nim
BEGIN
  SELECT RAISE(ABORT, 'a nim never changes; delete the record and add it with the other nim');
END;

-- The batch 0 is a silent one (begin_silent). INSERT OR REPLACE of another program fires no DELETE trigger, unless recursive_triggers is on.
CREATE TRIGGER mahasiswa_history_insert AFTER INSERT ON mahasiswa
BEGIN
  INSERT INTO mahasiswa_history (batch, oleh, moment, nim, nama_after, alamat_after)
  SELECT batch, oleh, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), NEW.nim, NEW.nama, NEW.alamat
  FROM mahasiswa_history_state WHERE batch IS NOT 0;
END;

CREATE TRIGGER mahasiswa_history_update AFTER UPDATE ON mahasiswa
WHEN NEW.nama <> OLD.nama OR NEW.alamat <> OLD.alamat
BEGIN
  INSERT INTO mahasiswa_history (
    batch, oleh, moment, nim, nama_before, alamat_before, nama_after, alamat_after
  )
  SELECT batch, oleh, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), OLD.nim, OLD.nama, OLD.alamat,
    NEW.nama, NEW.alamat
  FROM mahasiswa_history_state WHERE batch IS NOT 0;
END;

CREATE TRIGGER mahasiswa_history_delete AFTER DELETE ON mahasiswa
BEGIN
  INSERT INTO mahasiswa_history (batch, oleh, moment, nim, nama_before, alamat_before)
  SELECT batch, oleh, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), OLD.nim, OLD.nama, OLD.alamat
  FROM mahasiswa_history_state WHERE batch IS NOT 0;
END;
