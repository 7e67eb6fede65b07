"""Every Indonesian sentence of the program that is not in a template of a page: first the event, then the remedy.

A sentence with a value in it is for `str.format`. Its caller takes each limit from the constant that sets it.
"""

import datetime as dt
from typing import Literal, NamedTuple

LABELS = {"nim": "NIM", "nama": "Nama", "alamat": "Alamat"}  # in every sentence
HEADER = tuple(LABELS.values())  # in the order of the fields
REMARK = "Keterangan"  # the title of the column of problems
TEMPLATE_SHEET = "Mahasiswa"  # the name of the sheet in our workbooks


def number(value: int) -> str:
    """10000 as `10.000`."""
    return f"{value:,}".replace(",", ".")


def size(count: int) -> str:
    """A limit in bytes as “64 KB” or “16 MB”."""
    return f"{count >> 20} MB" if count >= 1 << 20 else f"{count >> 10} KB"


MONTHS = (
    "Januari", "Februari", "Maret", "April", "Mei", "Juni", "Juli", "Agustus", "September", "Oktober", "November", "Desember",
)  # fmt: skip


def moment(local: dt.datetime, *, with_year: bool) -> str:
    """A moment in its time zone as “21 Nov 10.32 WIB”, with the year as “21 Nov 2026 10.32 WIB”."""
    year = f" {local.year}" if with_year else ""
    zone = local.tzname() or ""
    # Most zones without a name of their own are called “+08”.
    zone = zone if zone.isalpha() else f"UTC{zone}"
    return f"{local.day} {MONTHS[local.month - 1][:3]}{year} {local:%H.%M} {zone}"


def date(day: dt.date) -> str:
    """A date as “21 November 2026”."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def column_letter(column: int) -> str:
    """Excel's name for a column that is counted from 0: A, B, …, Z, AA."""
    before = column_letter(column // 26 - 1) if column >= 26 else ""
    return before + chr(ord("A") + column % 26)


# ---- a whole file, or all pasted cells
EMPTY = "Berkas ini kosong. Pilih berkas yang berisi data mahasiswa."
PICTURE = "Berkas ini berupa gambar. Ketik datanya di Excel, atau mintalah berkas Excel-nya, lalu unggah lagi."
PDF = "Berkas ini berformat PDF. Mintalah berkas Excel-nya, atau salin tabelnya ke Excel, lalu unggah lagi."
NOT_A_SPREADSHEET = (
    "Berkas ini bukan lembar kerja yang dapat dibaca. Gunakan berkas .xlsx, .xls, .ods, atau .csv."
)
DOCUMENT = (
    "Berkas ini dokumen, bukan lembar kerja. Buka di Word, salin tabelnya, lalu tempel di bawah."
)
NUMBERS = "Berkas ini dari Numbers. Buka di Numbers, pilih File, Ekspor ke, Excel, lalu unggah berkas .xlsx-nya."
PACKED = "Berkas ini berisi berkas lain (.zip). Buka dahulu, lalu unggah berkas Excel yang ada di dalamnya."
CONTACTS = "Ini daftar kontak (vCard), dan tidak memuat NIM. Buat tabel dengan kolom NIM, Nama, dan Alamat di Excel, lalu impor tabel itu."
WEB_ARCHIVE = (
    "Berkas ini arsip halaman web (.mht). Buka di Excel, simpan sebagai .xlsx, lalu unggah lagi."
)
DBASE = "Berkas ini basis data dBase (.dbf). Buka di Excel atau LibreOffice, simpan sebagai .xlsx, lalu unggah lagi."
GOOGLE_LINK = "Berkas .gsheet hanya tautan ke Google Sheets. Buka tautannya, pilih File, Download, Microsoft Excel (.xlsx), lalu unggah berkas itu."
DAMAGED = "Berkas ini rusak atau tidak lengkap. Buka di Excel, simpan sebagai .xlsx yang baru, lalu unggah lagi."
OLD_EXCEL = "Berkas ini dari Excel yang sangat lama. Buka di Excel atau LibreOffice, simpan sebagai .xlsx, lalu unggah lagi."
PASSWORD = "Berkas ini dilindungi kata sandi. Buka di Excel, hapus kata sandinya, simpan, lalu unggah lagi."  # noqa: S105 - a sentence, not a password
TOO_HEAVY = "Berkas ini terlalu besar atau terlalu rumit untuk dibaca. Salin kolom NIM, Nama, dan Alamat ke berkas baru, simpan sebagai .xlsx atau .csv, lalu unggah lagi."
TOO_MANY_ROWS = "Berkas ini berisi lebih dari {limit} baris. Bagi menjadi beberapa berkas, lalu unggah satu per satu."
TOO_MANY_SHEETS = "Berkas ini berisi lebih dari {limit} lembar (sheet). Hapus lembar yang tidak perlu, atau bagi menjadi beberapa berkas, lalu unggah lagi."
OPEN_QUOTE = 'Baris {row}: tanda kutip (“"”) dibuka tetapi tidak ditutup. Perbaiki barisnya, lalu unggah lagi.'
_ADD_TITLES = "Beri judul NIM, Nama, dan Alamat pada baris pertama"
NO_OTHER_COLUMN = f"Kolom Nama dan Alamat tidak ditemukan. {_ADD_TITLES}."
NAMES_NOT_PARTED = "Nama dan alamat di teks ini hanya dipisahkan spasi, jadi batasnya tidak dapat dipastikan. Salin tabelnya dari Excel atau Word, atau beri koma di antara nama dan alamat, lalu coba lagi."
NIM_NOT_TITLED = "Judul kolom NIM tidak ditemukan."
NIM_COUNTS_ROWS = "Kolom NIM kosong, atau hanya berisi nomor urut."
COLUMN_UNSURE = "Kolom {field} belum pasti."
CELLS_WITHOUT_TITLE = "Sebagian besar baris berisi sel yang tidak berjudul."
UNTITLED = "tanpa judul"
LINES_SPLIT = "NIM, Nama, dan Alamat dipisahkan menurut NIM dan koma pertama. Periksa contohnya."
OTHER_TITLES = "Baris {row} tampaknya judul tabel lain. Simpan setiap tabel sebagai berkas sendiri, lalu unggah satu per satu."
LINES_NOT_READ = "Teks ini tidak berkolom, dan NIM tidak ditemukan di sebagian besar barisnya. Salin tabelnya dari Excel atau Word, atau tulis satu mahasiswa per baris: NIM Nama, Alamat."
SHEETS_NOT_READ = "Lembar (sheet) yang tidak dibaca: {names}."
NO_ROWS = "Di bawah judul kolom belum ada data. Isi datanya, simpan, lalu unggah lagi."

# ---- one row of a file
NEW_NEEDS_ONE = "Nama atau alamat kosong. Mahasiswa baru harus memiliki keduanya."


EXCHANGED = "Nama dan Alamat tampaknya tertukar."

PARTS = {
    "berubah": "Berubah",
    "baru": "Baru",
    "sama": "Tidak berubah",
    "ditemukan": "Ditemukan",
}  # of a preview or a selection

# ---- the preview of an import
PREVIEW_GONE = "Pratinjau ini sudah tidak ada. Unggah lagi berkasnya."
PREVIEW_ALERTS = {
    "stale": "Pratinjau ini sudah diubah di jendela lain. Belum ada yang disimpan.",
    "changed": "Sebagian data sudah diubah orang lain sejak pratinjau. Belum ada yang disimpan. Periksa sekali lagi, lalu simpan.",
    "columns": "Pilih satu kolom untuk NIM, dan setidaknya satu untuk Nama atau Alamat.",
    "checked": "Isian Anda sudah diperiksa. Belum ada yang disimpan. Periksa sekali lagi, lalu simpan.",
}

# ---- downloads
CELL_TOO_LONG = "{field} untuk NIM {nim} lebih dari {limit} karakter, batas sel Excel. Persingkat isinya, atau unduh sebagai CSV."
CELL_NOT_CARRIED = "{field} untuk NIM {nim} berisi karakter yang tidak dapat disimpan di Excel. Perbaiki isinya, atau unduh sebagai CSV."
TOO_MANY_FOR_EXCEL = (
    "Datanya melebihi {limit} baris, batas Excel. Persempit pencarian, atau unduh sebagai CSV."
)

# ---- the forms of a record, and its deletion
CONFIRM_DELETION = "Apakah Anda yakin ingin menghapus data ini?"  # specification 4.1.5
CONFIRM_NAMED_DELETION = "Apakah Anda yakin ingin menghapus data {nama} ({nim})?"
EDIT = "Edit"
DELETE = "Delete"
TICK = "Pilih"
TICK_ALL = "Pilih semua baris di halaman ini"

# ---- pages that report a problem
ProblemName = Literal[
    "bad request", "other site", "no record", "no page", "not in history", "changed", "deleted", "renamed", "nothing to undo", "method", "too slow", "too large",
    "file too large", "not carried", "not a form", "failed", "not saved", "uncertain", "not read",
    "locked", "busy", "busy write", "search too long", "page too long", "disk full",
]  # fmt: skip


class Problem(NamedTuple):
    """A page that reports a problem. `{limit}` in the text stands for a limit in bytes, as `size` writes it."""

    status: int
    heading: str
    text: str


PROBLEMS: dict[ProblemName, Problem] = {
    "bad request": Problem(400, "Permintaan tidak dapat dibaca", "Tautan atau data yang dikirim rusak. Muat ulang halaman, lalu coba lagi."),
    "other site": Problem(403, "Permintaan dari situs lain", "Permintaan ini datang dari situs lain, jadi tidak dijalankan. Buka halaman ini lewat alamatnya sendiri, lalu coba lagi."),
    "no record": Problem(404, "Tidak ditemukan", "Data mahasiswa tidak ditemukan. Mungkin sudah dihapus atau NIM-nya keliru."),
    "no page": Problem(404, "Halaman tidak ditemukan", "Periksa kembali tautannya."),
    "not in history": Problem(404, "Tidak ditemukan", "Perubahan ini tidak ada lagi di riwayat, jadi tidak dapat dikembalikan."),
    "changed": Problem(409, "", "Data ini sudah berubah sejak halaman ini dibuka. Pilih data mana yang dipakai."),
    "deleted": Problem(409, "", "Data ini sudah dihapus orang lain, jadi perubahan Anda belum disimpan."),
    "renamed": Problem(409, "", "NIM data ini sudah diganti menjadi {nim}, jadi perubahan Anda belum disimpan."),
    "nothing to undo": Problem(409, "Tidak dapat dikembalikan", "Data ini sudah berubah lagi sejak perubahan itu, jadi tidak ada yang dibatalkan."),
    "method": Problem(405, "Cara akses tidak didukung", "Halaman ini tidak dapat dibuka dengan cara tersebut."),
    "too slow": Problem(408, "Waktu pengiriman habis", "Data tidak diterima lengkap pada waktunya, jadi belum disimpan. Periksa koneksi internet, lalu kirim lagi."),
    "too large": Problem(413, "Kiriman terlalu besar", "Data yang dikirim terlalu besar (maksimal {limit})."),
    "file too large": Problem(413, "Berkas terlalu besar", "Ukuran berkas melebihi {limit}."),
    "not carried": Problem(422, "Tidak dapat diekspor", ""),
    "not a form": Problem(415, "Jenis data tidak didukung", "Data belum disimpan karena tidak dikirim sebagai formulir. Kirim lewat formulir di halaman ini."),
    "failed": Problem(500, "Maaf", "Terjadi kesalahan di server. Cobalah beberapa saat lagi. Jika berulang, hubungi pengelola."),
    "not saved": Problem(503, "Basis data tidak dapat diakses", "Data belum tersimpan karena basis data sedang tidak dapat diakses. Cobalah beberapa saat lagi."),
    "uncertain": Problem(503, "Basis data tidak dapat diakses", "Belum dapat dipastikan apakah data tersimpan. Periksa daftar sebelum mencoba lagi."),
    "locked": Problem(503, "Data sedang diubah", "Data ini sedang diubah program lain. Cobalah beberapa saat lagi. Belum ada yang disimpan."),
    "busy": Problem(503, "Layanan sedang sibuk", "Layanan sedang sibuk. Cobalah beberapa saat lagi."),
    "busy write": Problem(503, "Layanan sedang sibuk", "Layanan sedang sibuk. Cobalah beberapa saat lagi. Belum ada yang disimpan."),
    "search too long": Problem(503, "Pencarian terlalu lama", "Pencarian ini terlalu lama. Coba kata yang lebih pendek."),
    "page too long": Problem(503, "Halaman terlalu panjang", "Halaman ini terlalu panjang untuk ditampilkan. Tampilkan lebih sedikit baris per halaman, atau unduh sebagai CSV."),
    "disk full": Problem(503, "Ruang penyimpanan penuh", "Data belum tersimpan karena ruang penyimpanan di server penuh. Hubungi pengelola."),
    "not read": Problem(503, "Basis data tidak dapat diakses", "Data sedang tidak dapat ditampilkan. Cobalah beberapa saat lagi."),
}  # fmt: skip

# ---- the history
CHANGES = {  # the label of each kind of change, and the button that takes it back
    "add": ("Ditambah", "Batalkan penambahan"),
    "edit": ("Diubah", "Batalkan perubahan"),
    "delete": ("Dihapus", "Kembalikan data yang dihapus"),
    "import": ("Diimpor", "Batalkan impor"),
    "nim": ("NIM diganti", "Batalkan penggantian NIM"),
    "tidy": ("Dirapikan", "Batalkan perapian"),
    "undo": ("Dibatalkan", "Ulangi perubahan"),
    "restore": ("Dipulihkan dari cadangan", "Batalkan pemulihan"),
}

# ---- a selection
SELECTION_ALERTS = {
    "stale": "Pilihan ini sudah diubah di jendela lain. Belum ada yang dihapus.",
    "columns": "Pilih satu kolom untuk NIM.",
    "checked": "Perbaikan Anda sudah diperiksa. Belum ada yang dihapus. Lihat hasilnya di bawah, lalu lanjutkan.",
}
NO_ROWS_TICKED = (
    "Belum ada baris yang dicentang. Centang dulu barisnya di daftar, atau tempel NIM di sini."
)
TOO_MANY_FOUND = (
    "Pencarian ini menemukan lebih dari {limit} mahasiswa. Persempit pencariannya, lalu coba lagi."
)

NOTHING_CHOSEN = {
    "impor": "Pilih berkas atau tempel data dari Excel, lalu lanjutkan ke pratinjau.",
    "pilih": "Tempel NIM atau pilih berkas, lalu klik Tampilkan.",
}
HEALTHY = ("Sehat", "Layanan berjalan dan data dapat dibaca.")
