"""Texts that programs often damage: formulas, quotes, separators, white space, controls and unusual Unicode."""

_WORDS = """
=1+1 -5 @SUM(A1) ＝1 ＋1 －1 ＠x = + - @ ' '' '=1+1 ''=1 "=1+1" ""=1 {=1+1} =cmd|'/C'!A0 %=1 1=1
=HYPERLINK("http://x.example","k") " "" \""" ";" "; ;" "," "x x"y "x" "x";"y" \\ \\" \\n a;b,c
NIM Nama Alamat nim NIM/NPM sep=; sep=, \ufeffNIM;Nama;Alamat 1.23E+11 1,23457E+11 1E5 1e-5 007 12345.0 0x1F 1_000 1.000,50
-1.5 NaN Infinity 2020-01-02 1/2 12:30 TRUE FALSE null None NULL undefined #N/A #REF! #DIV/0!
<script>alert(1)</script> <b>&amp;</b> ]]> &lt; ';DROP/**/TABLE/**/mahasiswa;-- ${7*7} {{7*7}} %00 %2E %s%n
../../etc/passwd a/b / ?cari= # ~ * ... C:\\x _x000D_ \\u0041
\u202eabc \u2066abc\u2069 a\u202a\u202bb אבג مرحبا e\u0301 Z͑ͫ̓ͪ̂ͫ̽͏ ｆｕｌｌ ﬁ ß İı 😀 👩🏽‍🎓 🇮🇩 ❤️ 1️⃣ 漢字 ꦲꦏ꧀ꦱꦫꦗꦮ ᬅᬓ᭄ᬱᬭ สวัสดี 𠜎𠜱 Ω≈ç√∫ àéîõü
\u200b \u200bx\u200b \ufeff \ufeffx \u2060x \u200e\u200f a\ufffeb a\uffffb \U0010ffff \ufffd
"""

_SPACES = ("", " ", "\t", "\n", "\r", "\r\n", "\n\n", "\u00a0", "\u2003", "\u3000", " \t\r\n ", "\x0b", "\x0c", "\x85")  # fmt: skip
_AROUND = (" {} ", "\u00a0{}\u00a0", "{}\r\n", "{}\\", "{},", "{};", "{}\t", '{}"', "{}'")

NAUGHTY = [
    *_WORDS.split(),
    *_SPACES,
    *(around.format("x") for around in _AROUND),
    *(f"a{chr(code)}b" for code in (*range(1, 32), 0x7F, 0x85, 0x2028, 0x2029)),
    *(
        f"Budi{separator}{text}{separator}x"
        for separator in ",;\t\n\r"
        for text in ("=1+1", "'=1", '"=1"', "-", "'", "x")
    ),
    *(unit * (255 // len(unit)) for unit in ("x", "é", "😀", '"', "'", ",=", ";'", '""\n', "\r\n")),
]
"""Each of them can be stored as a text. NUL, and half a surrogate pair, cannot."""
