"""Texts on pages: an HTML parser reads exactly the texts that were typed, and the policy matches the page."""

import base64
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from harness import Page, Site
from hypothesis import example, given, settings
from hypothesis import strategies as st

# Every character that can be stored: all but NUL and the surrogates, which UTF-8 cannot encode.
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
# Characters with a meaning in forms, URLs or HTML are generated more often than by chance.
PITFALLS = st.sampled_from(
    ["\r", "\n", "\r\n", "\t", " ", "&", "<", ">", '"', "'", "`", "=", "/", "\\", "%", "+", ";", "#", "?", ".", "{{", "}}", "{%", "&amp;", "&#13;", "&lt", "&#0;", "<!--", "-->", "</td>", "</table>", "]]>", "<script>", "%00", "%2F", "\x01", "\x0b", "\x0c", "\x1a", "\x1f", "\x7f", "\x80", "\x85", "\x9f", "\xa0", "\xad", "́", "\u200b", "\u200e", "\u2028", "\u2029", "\u202e", "\ufdd0", "\ufeff", "�", "\ufffe", "\uffff", "🎓", "\U0001fffe", "\U0010ffff"]
)  # fmt: skip
TEXTS = st.lists(PITFALLS | st.text(CHARACTERS, max_size=8), max_size=12).map("".join)
# Rows of plain texts are rendered by a faster path.
PLAIN = st.text("09AZaz-_.~%/ 2F", max_size=8)
NIMS = (PLAIN | TEXTS).map(lambda text: text[:255]).filter(lambda nim: nim not in (".", ".."))

bounded = settings(max_examples=80, deadline=None)


@bounded
@given(nim=NIMS, nama=TEXTS, alamat=TEXTS)
@example(nim="\r\n\t\v\f ", nama="\n\n", alamat="\r")
@example(nim="", nama="", alamat="")
@example(nim="/" * 255, nama="</td></tr></table>", alamat='"><script>alert(1)</script>')
@example(nim="a/../b", nama="".join(map(chr, range(1, 160))), alamat="&#13;&#10;&#0;&#x80;&NotEqualTilde;&lt&ampamp;")
def test_text_comes_back_through_the_list_and_the_edit_page(site: Site, nim: str, nama: str, alamat: str) -> None:
    """The list and the edit page show exactly the texts that were typed, and saving them changes nothing."""
    form = site.page(site.path("/mahasiswa/add")).record_form
    assert site.submit(form, nim=nim, nama=nama, alamat=alamat).status_code == 302
    try:
        assert site.list().rows == [("1", nim, nama, alamat)]
        (row,) = site.list().table
        edit = site.page(row.links[0].target).record_form
        assert edit.values == {"nim": nim, "nama": nama, "alamat": alamat}

        assert site.submit(edit).status_code == 302
        assert site.list().rows == [("1", nim, nama, alamat)]
    finally:
        (row,) = site.list().table
        assert site.submit(row.forms[0]).status_code == 302
        assert site.list().rows == []


@bounded
@given(
    nims=st.sets(NIMS, max_size=6) | st.sets(PLAIN.filter(lambda nim: nim not in (".", "..")), max_size=6), text=TEXTS
)
@example(nims={"a%2Fb", "a/b", "a b", "%", ""}, text="")
def test_each_row_of_a_list_has_its_own_texts_and_paths(site: Site, nims: set[str], text: str) -> None:
    """In a list of several records each row has its own texts and paths, in the order of code points."""
    for nim in nims:
        assert site.add(nim, nim + text, text).status_code == 302
    try:
        table = site.list().table
        assert [row.cells[:4] for row in table] == [
            (str(number), nim, nim + text, text) for number, nim in enumerate(sorted(nims), 1)
        ]
        for nim, row in zip(sorted(nims), table, strict=True):
            assert [link.href for link in row.links] == [site.path("/mahasiswa/edit/", nim)]
            assert [form.action for form in row.forms] == [site.path("/mahasiswa/delete/", nim)]
    finally:
        for nim in nims:
            site.delete(nim)
    assert site.list().rows == []


def test_the_policy_allows_exactly_the_inline_code_of_the_page(site: Site) -> None:
    """The policy has the hashes of the inline style sheet and the inline handler, and the pages have no other code."""
    with stored(site, "0001"):
        answers = [site.get(target) for target in ("/", "/mahasiswa/add", "/mahasiswa/edit/0001", "/nowhere")]
    handlers = set()
    for answer in answers:
        policy = {name: sources for name, *sources in (part.split() for part in answer.headers["content-security-policy"].split(";"))}  # fmt: skip
        page = Page(answer.text, site.origin)
        (sheet,) = page.tree.css("style")
        assert hash_of(sheet.text()) in policy["style-src"]
        assert page.tree.css("script") == []
        for node in page.tree.css("*"):
            assert "style" not in node.attributes
            for name, value in node.attributes.items():
                if name.startswith("on"):
                    handlers.add((name, value))
                    assert hash_of(value or "") in policy["script-src"]
        assert "'unsafe-hashes'" in policy["script-src"]
        assert len(policy["script-src"]) == 2
    assert handlers == {("onsubmit", "return confirm('Apakah Anda yakin ingin menghapus data ini?')")}


def test_ids_are_unique_and_every_input_has_a_label(site: Site) -> None:
    """Ids are unique, references to them resolve, and every input has a label, on refused forms too."""
    with stored(site, "0001"):
        answers = [site.get(target) for target in ("/", "/mahasiswa/add", "/mahasiswa/edit/0001")]
        answers += [site.add("0001", "Siti", "Solo"), site.post("/mahasiswa/add"), site.post("/mahasiswa/edit/0001")]
    for answer in answers:
        tree = Page(answer.text, site.origin).tree
        ids = [node.attributes["id"] for node in tree.css("[id]")]
        assert len(ids) == len(set(ids))
        for reference in ("for", "aria-describedby", "aria-labelledby"):
            for node in tree.css(f"[{reference}]"):
                assert node.attributes[reference] in ids
        labelled = {node.attributes.get("for") for node in tree.css("label")}
        for node in tree.css("input:not([type=hidden]), select, textarea"):
            assert node.attributes.get("id") in labelled or node.attributes.get("aria-label")


@contextmanager
def stored(site: Site, nim: str) -> Iterator[None]:
    """Store a record with this nim for the length of the block."""
    assert site.add(nim, "Siti", "Solo").status_code == 302
    try:
        yield
    finally:
        site.delete(nim)


def hash_of(source: str) -> str:
    """Return the source expression of inline code in a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
