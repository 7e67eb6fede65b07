# ruff: noqa: ANN001, ANN201, ANN202, DJ008
"""The peer for imports: Django's administration pages with django-import-export. `gunicorn app:application`."""

import os

import django
from django.conf import settings
from django.contrib import admin
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.db import connection, models
from django.http import HttpResponse
from django.urls import path

settings.configure(
    DEBUG=False,
    SECRET_KEY=os.urandom(32).hex(),
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    STATIC_URL="/static/",
    INSTALLED_APPS=[
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "import_export",
        __name__,
    ],
    MIDDLEWARE=[
        "django.middleware.csrf.CsrfViewMiddleware",
        f"{__name__}.everyone_is_staff",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    MESSAGE_STORAGE="django.contrib.messages.storage.cookie.CookieStorage",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["DATABASE"]}},
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
)


def everyone_is_staff(get_response):
    def respond(request):
        request.user = User.objects.get()
        return get_response(request)

    return respond


django.setup(set_prefix=False)

from django.contrib.auth.models import User  # noqa: E402 - needs the settings, like the next ones
from import_export.admin import ImportMixin  # noqa: E402
from import_export.formats.base_formats import XLSX  # noqa: E402
from import_export.resources import ModelResource  # noqa: E402


class Mahasiswa(models.Model):
    nim = models.TextField(primary_key=True)
    nama = models.TextField()
    alamat = models.TextField()

    class Meta:
        db_table = "mahasiswa"


class MahasiswaResource(ModelResource):
    class Meta:
        model = Mahasiswa
        import_id_fields = ("nim",)


@admin.register(Mahasiswa)
class MahasiswaAdmin(ImportMixin, admin.ModelAdmin):
    resource_classes = (MahasiswaResource,)
    formats = (XLSX,)


def index(_request):
    return HttpResponse(str(Mahasiswa.objects.count()))


urlpatterns = [path("", index), path("admin/", admin.site.urls)]

call_command("migrate", verbosity=0)  # the tables of Django's own applications
with connection.schema_editor() as editor:
    editor.create_model(Mahasiswa)
User.objects.create_superuser("staff")

application = get_wsgi_application()
