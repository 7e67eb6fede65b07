# ruff: noqa: ANN001, ANN201, DJ008
"""The peer written with Django and psycopg, in one file: `gunicorn app:application`."""

import os
from pathlib import Path
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connection, models
from django.http import Http404
from django.shortcuts import redirect, render
from django.urls import path

_address = urlsplit(os.environ["DATABASE_URL"])

# Without DEBUG, Django compiles its templates once.
settings.configure(
    DEBUG=False,
    SECRET_KEY=os.urandom(32).hex(),
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=["django.middleware.security.SecurityMiddleware", "django.middleware.common.CommonMiddleware"],
    USE_I18N=False,
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": _address.path.lstrip("/"),
            "USER": _address.username,
            "HOST": _address.hostname,
            "PORT": _address.port,
            "CONN_MAX_AGE": None,  # each thread keeps its connection
        }
    },
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            # The templates without syntax of Django are the same as those of Flask.
            "DIRS": [Path(__file__).parent / "templates", Path(__file__).parent.parent / "flask/templates"],
            "OPTIONS": {"context_processors": [f"{__name__}.cdn"]},
        }
    ],
)
django.setup(set_prefix=False)


class Mahasiswa(models.Model):
    nim = models.TextField(primary_key=True)
    nama = models.TextField()
    alamat = models.TextField()

    class Meta:
        app_label = "peer"
        db_table = "mahasiswa"


def cdn(_request):
    return {"cdn": os.environ["CDN_URL"]}


def index(request):
    return render(request, "list.html", {"mahasiswa": Mahasiswa.objects.all()})


def add(request):
    if request.method != "POST":
        return render(request, "add.html")
    form = request.POST
    Mahasiswa.objects.create(nim=form.get("nim"), nama=form.get("nama"), alamat=form.get("alamat"))
    return redirect("/")


def edit(request, nim):
    if request.method != "POST":
        mahasiswa = Mahasiswa.objects.filter(nim=nim).first()
        if mahasiswa is None:
            raise Http404
        return render(request, "edit.html", {"mahasiswa": mahasiswa})
    form = request.POST
    Mahasiswa.objects.filter(nim=nim).update(nama=form.get("nama"), alamat=form.get("alamat"))
    return redirect("/")


def delete(_request, nim):
    Mahasiswa.objects.filter(nim=nim).delete()
    return redirect("/")


urlpatterns = [
    path("", index),
    path("mahasiswa/add", add),
    path("mahasiswa/edit/<str:nim>", edit),
    path("mahasiswa/delete/<str:nim>", delete),
]

with connection.cursor() as cursor:
    cursor.execute(
        "CREATE TABLE IF NOT EXISTS mahasiswa (nim TEXT PRIMARY KEY, nama TEXT NOT NULL, alamat TEXT NOT NULL)"
    )
connection.close()

application = get_wsgi_application()
