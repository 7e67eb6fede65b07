"""`mahasiswa forget` removes the person from the uploads too. tests/store/test_history.py looks at the list."""

from cli.operators import TWO, Operator

from mahasiswa.sheets.stage import Stage


def test_forget_removes_the_uploads_that_wait_for_a_confirmation(operator: Operator) -> None:
    operator.fill(TWO)
    folder = operator.folder / "mahasiswa.db-unggahan"
    with Stage.create(folder, "impor", "daftar.csv", "::1") as stage:
        stage.put_lines([], [(0, 2, "0001", "Ani", "Solo", "", "")], 1)
    assert "Back-ups may hold the texts." in operator.done("forget", "0001")
    assert not list(folder.iterdir())
