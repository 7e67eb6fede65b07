# ruff: noqa: ANN001, ANN201
"""The peer written with Flask, Jinja2 and Python's own sqlite3."""

import os
import sqlite3

from flask import Flask, abort, g, redirect, render_template, request

DATABASE = os.environ["DATABASE"]
SCHEMA = """CREATE TABLE IF NOT EXISTS mahasiswa (
  nim TEXT PRIMARY KEY,
  nama TEXT NOT NULL,
  alamat TEXT NOT NULL
) STRICT"""

app = Flask(__name__)
app.jinja_env.globals["cdn"] = os.environ["CDN_URL"]


def get_db():
    if "db" not in g:
        g.db = sqlite3.connect(DATABASE)
        g.db.row_factory = sqlite3.Row
    return g.db


@app.teardown_appcontext
def close_db(_error):
    db = g.pop("db", None)
    if db is not None:
        db.close()


@app.get("/")
def index():
    mahasiswa = get_db().execute("SELECT nim, nama, alamat FROM mahasiswa").fetchall()
    return render_template("list.html", mahasiswa=mahasiswa)


@app.get("/mahasiswa/add")
def add_form():
    return render_template("add.html")


@app.get("/mahasiswa/edit/<nim>")
def edit_form(nim):
    mahasiswa = get_db().execute("SELECT nim, nama, alamat FROM mahasiswa WHERE nim = ?", (nim,)).fetchone()
    if mahasiswa is None:
        abort(404)
    return render_template("edit.html", mahasiswa=mahasiswa)


@app.post("/mahasiswa/add")
def add():
    form = request.form
    with get_db() as db:
        db.execute(
            "INSERT INTO mahasiswa (nim, nama, alamat) VALUES (?, ?, ?)",
            (form.get("nim"), form.get("nama"), form.get("alamat")),
        )
    return redirect("/")


@app.post("/mahasiswa/edit/<nim>")
def edit(nim):
    form = request.form
    with get_db() as db:
        db.execute(
            "UPDATE mahasiswa SET nama = ?, alamat = ? WHERE nim = ?", (form.get("nama"), form.get("alamat"), nim)
        )
    return redirect("/")


@app.post("/mahasiswa/delete/<nim>")
def delete(nim):
    with get_db() as db:
        db.execute("DELETE FROM mahasiswa WHERE nim = ?", (nim,))
    return redirect("/")


with app.app_context():
    get_db().execute(SCHEMA)
