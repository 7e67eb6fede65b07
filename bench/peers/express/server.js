'use strict';

const path = require('node:path');
const Database = require('better-sqlite3');
const express = require('express');

const db = new Database(process.env.DATABASE);
if (process.env.JOURNAL === 'wal') {
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
}
db.exec(`CREATE TABLE IF NOT EXISTS mahasiswa (
  nim TEXT PRIMARY KEY,
  nama TEXT NOT NULL,
  alamat TEXT NOT NULL
) STRICT`);

const list = db.prepare('SELECT nim, nama, alamat FROM mahasiswa');
const find = db.prepare('SELECT nim, nama, alamat FROM mahasiswa WHERE nim = ?');
const insert = db.prepare('INSERT INTO mahasiswa (nim, nama, alamat) VALUES (?, ?, ?)');
const update = db.prepare('UPDATE mahasiswa SET nama = ?, alamat = ? WHERE nim = ?');
const remove = db.prepare('DELETE FROM mahasiswa WHERE nim = ?');

const app = express();
app.set('view engine', 'ejs');
app.set('views', path.join(__dirname, 'views'));
app.disable('x-powered-by');
app.locals.cdn = process.env.CDN_URL;
app.use(express.urlencoded({ extended: false }));

app.get('/', (req, res) => {
  res.render('list', { mahasiswa: list.all() });
});

app.get('/mahasiswa/add', (req, res) => {
  res.render('add');
});

app.get('/mahasiswa/edit/:nim', (req, res, next) => {
  const mahasiswa = find.get(req.params.nim);
  if (!mahasiswa) return next();
  res.render('edit', { mahasiswa });
});

app.post('/mahasiswa/add', (req, res) => {
  const { nim, nama, alamat } = req.body;
  insert.run(nim, nama, alamat);
  res.redirect('/');
});

app.post('/mahasiswa/edit/:nim', (req, res) => {
  const { nama, alamat } = req.body;
  update.run(nama, alamat, req.params.nim);
  res.redirect('/');
});

app.post('/mahasiswa/delete/:nim', (req, res) => {
  remove.run(req.params.nim);
  res.redirect('/');
});

const server = app.listen(Number(process.env.PORT), process.env.HOST);
process.on('SIGTERM', () => {
  server.close(() => db.close());
  server.closeAllConnections();
});
