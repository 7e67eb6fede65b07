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
    return (
        f"{local.day} {MONTHS[local.month - 1][:3]}{year} {local.hour:02}.{local.minute:02} {zone}"
    )


def date(day: dt.date) -> str:
    """A date as “21 November 2026”."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def column_letter(column: int) -> str:
    """Excel's name for a column that is counted from 0: A, B, …, Z, AA."""
    before = column_letter(column // 26 - 1) if column >= 26 else ""
    return before + chr(ord("A") + column % 26)


# ---- a whole file, or all pasted cells
EMPTY_FILE = "Berkas ini kosong (0 byte). Pilih berkas lain."
EMPTY = "Berkas ini kosong. Pilih berkas yang berisi data mahasiswa."
PASTE_NOT_REPEATED = "Teks yang ditempel lebih dari {limit}, jadi tidak ditampilkan lagi di sini. Tempel lagi setelah diperbaiki."
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
WEB_PAGE = "Isi berkas ini halaman web atau XML, bukan lembar kerja. Buka di Excel, simpan sebagai .xlsx, lalu unggah lagi."
DAMAGED = "Berkas ini rusak atau tidak lengkap. Buka di Excel, simpan sebagai .xlsx yang baru, lalu unggah lagi."
OLD_EXCEL = "Berkas ini dari Excel yang sangat lama. Buka di Excel atau LibreOffice, simpan sebagai .xlsx, lalu unggah lagi."
PASSWORD = "Berkas ini dilindungi kata sandi. Buka di Excel, hapus kata sandinya, simpan, lalu unggah lagi."  # noqa: S105 - a sentence, not a password
TOO_HEAVY = "Berkas ini terlalu besar atau terlalu rumit untuk dibaca. Salin kolom NIM, Nama, dan Alamat ke berkas baru, simpan sebagai .xlsx atau .csv, lalu unggah lagi."
TOO_LARGE = (
    "Ukuran berkas melebihi {limit}. Bagi menjadi beberapa berkas, lalu unggah satu per satu."
)
TOO_MANY_ROWS = "Berkas ini berisi lebih dari {limit} baris. Bagi menjadi beberapa berkas, lalu unggah satu per satu."
OPEN_QUOTE = 'Baris {row}: tanda kutip (“"”) dibuka tetapi tidak ditutup. Perbaiki barisnya, lalu unggah lagi.'
CELL_OVER_LIMIT = 'Baris {row}: isi salah satu selnya lebih dari {limit} karakter, mungkin karena tanda kutip (“"”) tidak ditutup. Perbaiki barisnya, lalu unggah lagi.'
_ADD_TITLES = "Beri judul NIM, Nama, dan Alamat pada baris pertama"
NO_NIM_COLUMN = f"Kolom NIM tidak ditemukan. {_ADD_TITLES}, lalu coba lagi."
NIM_AND_NAMA = "NIM dan Nama ada di kolom yang sama. Pisahkan menjadi dua kolom (di Excel: Data, Text to Columns), lalu coba lagi."
NO_OTHER_COLUMN = f"Kolom Nama dan Alamat tidak ditemukan. {_ADD_TITLES}."
NO_HEADER = "Judul kolom tidak ditemukan. Pilih kolomnya di bawah, atau tulis judul NIM, Nama, dan Alamat pada baris pertama."
NO_NIM_HEADER = "Kolom NIM tidak ditemukan. Tempel NIM saja, satu per baris, atau beri judul NIM pada baris pertama."
IN_LINES = "Teks ini tidak berkolom, jadi NIM, Nama, dan Alamat dipisahkan menurut letak NIM di tiap baris. Periksa hasilnya di bawah."
NAMES_NOT_PARTED = "Nama dan alamat di teks ini hanya dipisahkan spasi, jadi batasnya tidak dapat dipastikan. Salin tabelnya dari Excel atau Word, atau beri koma di antara nama dan alamat, lalu coba lagi."
NO_TITLES = "Judul kolom tidak ditemukan."
NIM_NOT_TITLED = "Kolom NIM tidak ditemukan."
NIM_COLUMN_BLANK = "Kolom {column} (NIM) kosong."
NIM_COUNTS_ROWS = "Kolom {column} tampaknya nomor urut, bukan NIM."
TITLED_TWICE = "Ada dua kolom {} ({} dan {})."
TITLE_UNSURE = "Kolom {column} mungkin bukan {field}."
CELLS_WITHOUT_TITLE = "Ada sel di kanan judul terakhir."
COLUMN_WITHOUT_TITLE = "Kolom {column} di sebelah {field} tidak berjudul."
LINES_SPLIT = "NIM, Nama, dan Alamat dipisahkan menurut NIM dan koma pertama. Periksa contohnya."
HIDDEN_COLUMN = "Kolom {column} tersembunyi di Excel."
OTHER_TITLES = "Baris {row} tampaknya judul tabel lain."
LINES_NOT_READ = "Teks ini tidak berkolom, dan NIM tidak ditemukan di sebagian besar barisnya. Salin tabelnya dari Excel atau Word, atau tulis satu mahasiswa per baris: NIM Nama, Alamat."
TRANSPOSED = "Judul kolomnya ada di kolom pertama, jadi tabelnya diputar: setiap kolom dibaca sebagai satu baris."
HIDDEN_ROWS = "Baris ini tersembunyi, tetapi ikut dibaca."
WITHOUT_HIDDEN_ROWS = "Lewati baris tersembunyi"
HIDDEN_COLUMNS = "Kolom {columns} tersembunyi, tetapi ikut dibaca."
SHEETS_NOT_READ = "Lembar (sheet) yang tidak dibaca: {names}."
RESPLIT = "Isi beberapa kolom tergabung dalam satu kolom, jadi sudah dipisahkan lagi."
SWAPPED = "Kolom NIM tampaknya tertukar: isinya bukan angka, sedangkan NIM ada di kolom lain. Periksa pilihan kolomnya."
ROW_NUMBERS = "Kolom {counting} tampaknya nomor urut, bukan NIM. NIM dibaca dari kolom {nim}."
COLUMN_NOT_CHOSEN = "Pilih kolom untuk NIM, dan untuk Nama atau Alamat."
COLUMN_CHOSEN_TWICE = "NIM hanya dapat dibaca dari satu kolom. Pilih salah satunya."
TWO_COLUMNS = "Ada dua kolom {field} ({first} dan {second}). Pilih yang benar."
COLUMN_UNSURE = "Kolom {column} mungkin bukan {field}. Periksa judul dan isinya."
PART_OF_SHEET = "{sheet} kolom {column}"
TEMPLATE_EMPTY = (
    "Templat ini belum diisi. Isi datanya di bawah judul kolom, simpan, lalu unggah lagi."
)
NO_ROWS = "Di bawah judul kolom belum ada data. Isi datanya, simpan, lalu unggah lagi."
NO_ROW_TO_SAVE = (
    "Tidak ada baris yang dapat disimpan. Periksa kolomnya, atau perbaiki baris di bawah ini."
)

# ---- one row of a file
NIM_BLANK = "NIM kosong. Isi NIM-nya."
_TYPE_NIM = "Ubah format kolom NIM menjadi Teks, lalu ketik ulang NIM-nya."
NIM_ROUNDED = "NIM {text} sudah dibulatkan oleh Excel, jadi angka aslinya hilang. " + _TYPE_NIM
NIM_TOO_MANY_DIGITS = (
    "NIM ini berupa angka lebih dari {limit} digit, jadi digit terakhirnya sudah hilang. "
    + _TYPE_NIM
)
NIM_NOT_WHOLE = "NIM {text} bukan bilangan bulat positif. " + _TYPE_NIM
NIM_UNADDRESSABLE = "NIM tidak boleh hanya “.” atau “..”. Isi NIM yang benar."
NIM_TOO_LONG = "NIM lebih dari {limit} karakter. Periksa apakah kolomnya tertukar."
NIM_TWICE = "NIM {nim} ada di {first} dan {second}. Hapus salah satunya."
TWO_NIMS = "Sel ini berisi dua NIM. Ketik salah satunya, atau lewati baris ini."
NIM_MASKED = "NIM berisi “####”, bukan angka aslinya. Lebarkan kolomnya di Excel, lalu salin lagi; atau ketik NIM-nya."
MASKED = "{field} berisi “####”, bukan isi aslinya. Lebarkan kolomnya di Excel, lalu salin lagi; atau ketik isinya."
NUL = "{field} berisi karakter NUL yang tidak dapat disimpan. Ketik ulang isinya."
DATE = "{field} terbaca sebagai tanggal atau waktu ({text}). Ubah format selnya menjadi Teks, lalu ketik ulang."
ERROR = "{field} berisi kesalahan rumus ({text}). Perbaiki rumusnya, atau ketik isinya."
FORMULA = "{field} berisi rumus tanpa hasil. Buka berkas di Excel, simpan, lalu unggah lagi; atau ketik isinya."
BOOLEAN = "{field} berisi {text}, bukan teks. Ketik ulang isinya."
NOT_TEXT = (
    "{field} terbaca sebagai angka ({text}). Ubah format selnya menjadi Teks, lalu ketik ulang."
)
TOO_LONG = "{field} terlalu panjang (lebih dari {limit} karakter). Periksa isinya."
NEW_NEEDS_NAMA = "Nama kosong. Mahasiswa baru harus memiliki nama."
NEW_NEEDS_ALAMAT = "Alamat kosong. Mahasiswa baru harus memiliki alamat."
NEW_NEEDS_BOTH = "Nama dan alamat kosong. Mahasiswa baru harus memiliki keduanya."
NEW_NEEDS_ONE = "Nama atau alamat kosong. Mahasiswa baru harus memiliki keduanya."
NO_NAMA_COLUMN = "Kolom Nama tidak ditemukan. Pilih kolomnya di bawah."
NO_ALAMAT_COLUMN = (
    "Kolom Alamat tidak ditemukan. Pilih kolomnya di bawah, atau isi semua dengan “-”."
)
GONE = "Data ini sudah dihapus orang lain sejak pratinjau, jadi tidak ada yang diperbarui."
MISSING_COLUMNS = (NO_NAMA_COLUMN, NO_ALAMAT_COLUMN)
NO_ALAMAT = "-"

SKIPPED_HEADER = "Tampaknya judul kolom, bukan data. Baris ini dilewati."
SKIPPED_TOTAL = "Tampaknya jumlah atau catatan, bukan data mahasiswa. Baris ini dilewati."
SKIPPED_SIGNATURE = "Tampaknya bagian tanda tangan, bukan data mahasiswa. Baris ini dilewati."
SKIPPED_TITLE = "Tampaknya judul atau keterangan, bukan data mahasiswa. Baris ini dilewati."
SKIPPED_REPETITION = "Sama persis dengan {row}, jadi dihitung sekali."

NIM_SPACES = "NIM ini berisi spasi di tengahnya. Periksa sebelum menyimpan."
SPACES_TIDIED = "Spasi yang berlebih di nama atau alamat dirapikan."
JOINED_CELLS = "Alamat ini terpisah di beberapa sel, jadi sudah digabung lagi."
MORE_CELLS = (
    "Baris ini punya lebih banyak sel daripada judul kolom. Periksa apakah isinya bergeser."
)
OTHER_NAME = (
    "Nama di berkas berbeda sama sekali dari nama di daftar. Mungkin NIM atau namanya bergeser."
)
SWALLOWED = "Sel ini berisi baris lain, karena tanda kutip tidak ditutup. Perbaiki berkasnya, lalu unggah lagi."
CONTINUED = "Ada baris tanpa NIM yang tampaknya lanjutan baris di atasnya."
CONTINUE = "Sambung {count} baris"
DEGREE = "Gelar di belakang koma terbaca sebagai alamat."
MOVE_DEGREE = "Pindahkan {count} gelar ke Nama: {new}"
EXCHANGED = "Nama dan Alamat tampaknya tertukar."
EXCHANGE = "Tukar Nama dan Alamat di {count} baris"
TWICE_DECODED = "Ada huruf yang rusak: “{old}”."
DECODE = "Perbaiki {count} baris, misalnya menjadi “{new}”"
NIM_CARRIES = "NIM berisi tanda lain, misalnya {old}."
CLEAN_NIMS = "Bersihkan {count} NIM: {old} menjadi {new}"
NAME_CARRIES = "Nama berisi nomor atau tanda lain, misalnya {old}."
CLEAN_NAMES = "Bersihkan {count} nama: {old} menjadi {new}"
ADDRESS_LIKE_DATE = "Alamat ini berisi tanggal, mungkin diubah oleh Excel. Perbaiki alamatnya."
LOST_LETTERS = (
    "Ada huruf yang hilang dan terbaca sebagai �. Perbaiki teksnya, atau unggah berkas aslinya."
)
NOTHING = "“{old}” bukan nama atau alamat."
EMPTY_CELLS = "Kosongkan di {count} baris"
ODD_NIMS = "NIM ini berbeda panjang atau hurufnya dari hampir semua NIM lain."
OTHER_NAMES = "{others} dari {changed} nama berbeda sama sekali dari yang tersimpan. Periksa apakah barisnya bergeser."
NAMA_NO_LETTER = "Nama ini tidak berisi huruf."
LINE_BREAKS = "Ganti baris di dalam sel diubah menjadi koma."
NAMA_LINE_BREAKS = "Ganti baris di dalam nama diubah menjadi spasi."
NEAR_STORED = "NIM ini mirip dengan NIM yang sudah ada."
_ZEROS = "Mungkin angka nol di depannya hilang"
SHORTER_NIMS = f"NIM ini satu digit lebih pendek daripada NIM lain. {_ZEROS}."
LOST_ZEROS = f"{NEAR_STORED} {_ZEROS}."
NEAR_RECORD = "NIM ini mirip dengan {nim} ({nama}) yang sudah ada."
NEAR_IN_FILE = "NIM {nim} mirip dengan {other} di {row}."
NIM_LIKE_DATE = (
    "NIM ini tampaknya tanggal, mungkin diubah oleh Excel. Ketik NIM-nya, atau lewati baris ini."
)
NIM_ENDS_IN_ZEROS = "Angka terakhir NIM ini sudah dibulatkan Excel menjadi nol. Ketik NIM-nya, atau lewati baris ini."
NO_DIGIT = "NIM ini tidak berisi angka. Centang jika memang benar, atau perbaiki."
DOUBTS = (NO_DIGIT, NIM_LIKE_DATE, NIM_ENDS_IN_ZEROS)
SPACES_REMOVED = "Spasi di awal atau akhir NIM dan karakter yang tidak terlihat dihapus."
APOSTROPHE_REMOVED = "Tanda petik di awal NIM dihapus."
FORMULA_REMOVED = "Tanda =“…” di sekitar NIM dihapus."
DECIMALS_REMOVED = "Angka nol di belakang koma pada NIM dihapus."
SHORT_NIM = (
    "NIM ini lebih pendek daripada NIM lain ({length} digit). "
    + _ZEROS
    + "; periksa sebelum menyimpan."
)
OTHER_LENGTH = (
    "Panjang NIM ini berbeda dari NIM lain ({length} karakter). Periksa sebelum menyimpan."
)
LETTER_NIM = "NIM ini berisi huruf, sedangkan NIM lain hanya angka. Periksa sebelum menyimpan."

PARTS = {"berubah": "Berubah", "baru": "Baru", "sama": "Tidak berubah"}  # of a preview's page
OTHER_ROWS = "dan {number} baris lain"

# ---- the preview of an import
PREVIEW_GONE = "Pratinjau ini sudah tidak ada. Unggah lagi berkasnya."
PREVIEW_ALERTS = {
    "stale": "Pratinjau ini sudah diubah di jendela lain. Belum ada yang disimpan.",
    "changed": "Sebagian data sudah diubah orang lain sejak pratinjau. Belum ada yang disimpan. Periksa sekali lagi, lalu simpan.",
    "columns": "Pilih satu kolom untuk NIM, dan setidaknya satu untuk Nama atau Alamat.",
    "checked": "Isian Anda sudah diperiksa. Belum ada yang disimpan. Periksa sekali lagi, lalu simpan.",
}

# ---- the confirmation of an import
CONFIRMATION_DAMAGED = "Isi pratinjau ini tidak lengkap atau berubah. Ulangi dari awal."
CONFIRMATION_TOO_LARGE = (
    "Isi pratinjau ini melebihi {limit}. Bagi berkasnya menjadi beberapa bagian."
)

# ---- downloads
CELL_TOO_LONG = "{field} untuk NIM {nim} lebih dari {limit} karakter, batas sel Excel. Persingkat isinya, atau unduh sebagai CSV."
CELL_NOT_CARRIED = "{field} untuk NIM {nim} berisi karakter yang tidak dapat disimpan di Excel. Perbaiki isinya, atau unduh sebagai CSV."
TOO_MANY_FOR_EXCEL = (
    "Datanya melebihi {limit} baris, batas Excel. Persempit pencarian, atau unduh sebagai CSV."
)
_NIM_HINT = "Ketik NIM apa adanya. Kolom ini berformat Teks, jadi nol di depan dan angka panjang tidak berubah."
TEMPLATE_HINTS = (_NIM_HINT, "Nama lengkap mahasiswa.", "Alamat lengkap mahasiswa.")

# ---- the forms of a record, and its deletion
CONFIRM_DELETION = "Apakah Anda yakin ingin menghapus data ini?"  # specification 4.1.5
CONFIRM_NAMED_DELETION = "Apakah Anda yakin ingin menghapus data {nama} ({nim})?"
EDIT = "Edit"
DELETE = "Delete"
TICK = "Pilih"
TICK_ALL = "Pilih semua baris di halaman ini"

# ---- pages that report a problem
ProblemName = Literal[
    "bad request", "other site", "no record", "no page", "not in history", "changed", "deleted", "renamed", "nothing to undo", "undo refused", "method", "too slow", "too large",
    "confirmation too large", "file too large", "not carried", "not a form", "failed", "not saved", "uncertain", "not read",
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
    "undo refused": Problem(409, "Tidak dapat dikembalikan", "Data itu melanggar aturan daftar, jadi tidak ada yang dikembalikan. Hubungi pengelola."),
    "method": Problem(405, "Cara akses tidak didukung", "Halaman ini tidak dapat dibuka dengan cara tersebut."),
    "too slow": Problem(408, "Waktu pengiriman habis", "Data tidak diterima lengkap pada waktunya, jadi belum disimpan. Periksa koneksi internet, lalu kirim lagi."),
    "too large": Problem(413, "Kiriman terlalu besar", "Data yang dikirim terlalu besar (maksimal {limit})."),
    "confirmation too large": Problem(413, "Kiriman terlalu besar", "Data yang akan disimpan melebihi {limit}. Bagi berkasnya menjadi beberapa bagian."),
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
HISTORY = "Riwayat"
LATEST = "Terakhir"
OWN_CHANGE = "Perubahan Anda"
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
RESTORED = "Dikembalikan"  # the label of an undo that restored a deleted record
# The line about a change is the record and the label. Some kinds have another line. The line about
# an undo of one record depends on how the undo itself changed the record.
LATEST_LINES = {"nim": "NIM {who} diganti", "undo": "perubahan {who} dibatalkan"}
LATEST_NIM_LINE = "NIM {nama} diganti dari {old} menjadi {nim}"
LATEST_RETURNED = "{who} dikembalikan"
LATEST_REMOVED = "penambahan {who} dibatalkan"
UNDO_TOO_LONG = "Lebih dari {limit} data, jadi tidak dapat dikembalikan sekaligus."
UNDONE_IN_PART = "{rows} data dikembalikan. {left} data lain sudah berubah lagi dan dibiarkan."
UNDO_BATCH = "{name} ({rows} data)"
UNDO_REST = "Kembalikan {rows} data yang belum berubah"

# ---- a selection
OTHER_NAMES_SELECTED = (
    "Nama tidak cocok dengan daftar. Mungkin NIM-nya keliru. Periksa sebelum menghapus."
)
HIDDEN_ROWS_SELECTED = "Ada baris yang tersembunyi di Excel. Periksa sebelum menghapus."
WITHOUT_HIDDEN_SELECTED = "Keluarkan baris tersembunyi"
SEVERAL_NIMS = "Jika ini beberapa NIM, tulis satu NIM per baris."
NO_ROWS_TICKED = (
    "Belum ada baris yang dicentang. Centang dulu barisnya di daftar, atau tempel NIM di sini."
)
TOO_MANY_FOUND = (
    "Pencarian ini menemukan lebih dari {limit} mahasiswa. Persempit pencariannya, lalu coba lagi."
)
NO_NIMS_READ = "Tidak ada NIM yang terbaca. Periksa isinya, lalu coba lagi."

NOTHING_CHOSEN = {
    "impor": "Pilih berkas atau tempel data dari Excel, lalu lanjutkan ke pratinjau.",
    "pilih": "Tempel NIM atau pilih berkas, lalu klik Tampilkan.",
}
HEALTHY = ("Sehat", "Layanan berjalan dan data dapat dibaca.")
