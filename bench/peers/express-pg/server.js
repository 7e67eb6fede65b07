'use strict';

const path = require('node:path');
const express = require('express');
const { Pool } = require('pg');

const pool = new Pool({ connectionString: process.env.DATABASE_URL });
pool.on('error', (error) => console.error(error));

// A name makes each connection prepare a statement once.
const LIST = { name: 'list', text: 'SELECT nim, nama, alamat FROM mahasiswa' };
const FIND = { name: 'find', text: 'SELECT nim, nama, alamat FROM mahasiswa WHERE nim = $1' };
const INSERT = { name: 'insert', text: 'INSERT INTO mahasiswa (nim, nama, alamat) VALUES ($1, $2, $3)' };
const UPDATE = { name: 'update', text: 'UPDATE mahasiswa SET nama = $1, alamat = $2 WHERE nim = $3' };
const REMOVE = { name: 'remove', text: 'DELETE FROM mahasiswa WHERE nim = $1' };

const app = express();
app.set('view engine', 'ejs');
app.set('views', path.join(__dirname, '../express/views'));
app.disable('x-powered-by');
app.locals.cdn = process.env.CDN_URL;
app.use(express.urlencoded({ extended: false }));

app.get('/', async (req, res) => {
  const { rows } = await pool.query(LIST);
  res.render('list', { mahasiswa: rows });
});

app.get('/mahasiswa/add', (req, res) => {
  res.render('add');
});

app.get('/mahasiswa/edit/:nim', async (req, res, next) => {
  const { rows } = await pool.query({ ...FIND, values: [req.params.nim] });
  if (!rows.length) return next();
  res.render('edit', { mahasiswa: rows[0] });
});

app.post('/mahasiswa/add', async (req, res) => {
  const { nim, nama, alamat } = req.body;
  await pool.query({ ...INSERT, values: [nim, nama, alamat] });
  res.redirect('/');
});

app.post('/mahasiswa/edit/:nim', async (req, res) => {
  const { nama, alamat } = req.body;
  await pool.query({ ...UPDATE, values: [nama, alamat, req.params.nim] });
  res.redirect('/');
});

app.post('/mahasiswa/delete/:nim', async (req, res) => {
  await pool.query({ ...REMOVE, values: [req.params.nim] });
  res.redirect('/');
});

let server;
pool
  .query('CREATE TABLE IF NOT EXISTS mahasiswa (nim TEXT PRIMARY KEY, nama TEXT NOT NULL, alamat TEXT NOT NULL)')
  .then(() => {
    server = app.listen(Number(process.env.PORT), process.env.HOST);
  });
process.on('SIGTERM', () => {
  server.close(() => pool.end());
  server.closeAllConnections();
});
