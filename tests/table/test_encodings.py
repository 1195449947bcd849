"""Encodings found by the letters that result, told, kept with a selector, and hinted at where a column is missing."""

# ruff: noqa: RUF001

import numpy as np
import pandas as pd
import pytest
from tests.commands import run

import askwise
from askwise.errors import InvalidInput
from askwise.table.desk import Desk
from askwise.table.encodings import decoded, plausibility
from askwise.table.reading import TableOptions, read_table

TEXTS = {
    "cp1252": [
        "âge;antécédent\n31;hypothyroïdie\n45;œdème\n",
        "hypothyroïdie,y\n1,2\n",
        "größe,straße\n1,2\n",
        "coração,não\n1,2\n",
        "température (°C),volume (m³),dose (µg)\n1,2,3\n",
        "ÂGE,DURÉE\n1,2\n",
    ],
    "cp1250": ["płeć,głowa\nmężczyzna,może\n", "pohlaví,věk,léčba\nmuž,3,příznivý\n"],
    "cp1251": ["пол,возраст\nмуж,3\nжен,4\n", "да,нет\n1,2\n"],
    "cp1253": ["φύλο,ηλικία\nάνδρας,3\n"],
    "cp1254": ["yaş,ağrı\n1,kadın\n"],
    "cp1257": ["dzimums,vecums\nvīrietis,3\nķermenis,ņ\n"],
    "mac_roman": ["âge,réponse\n1,élevé\n2,hypothyroïdie\n"],
    "koi8_r": ["пол,возраст\nмуж,3\n"],
    "gb18030": ["年龄,性别\n1,男\n2,女\n"],
    "shift_jis": ["年齢,性別\n1,男性\n"],
}


@pytest.mark.parametrize("encoding", TEXTS)
def test_the_letters_of_a_language_tell_the_encoding(encoding):
    for text in TEXTS[encoding]:
        header, rows = text.split("\n", 1)
        for content in (text, f"{header}\n{rows * 20}"):  # the same few letters, seldom or often
            assert decoded(content.encode(encoding))[0] == content


def test_letters_of_no_language_are_less_plausible():
    words = ["hypothyroïdie", "hypothyroďdie", "hypothyroñdië", "hypothyro³die", "hypothyroÏdie"]
    scores = [plausibility(word) for word in words]
    assert scores[0] == max(scores)
    assert scores[0][0] == scores[1][0] == 1  # Czech letters: as likely, and said to be
    assert all(score[0] < 1 for score in scores[2:])


def test_a_guess_is_told_with_what_others_would_read(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes("hypothyroïdie,y\n1,2\n".encode("cp1252"))
    found = read_table(path)
    assert found.encoding == "cp1252"
    assert "read as cp1252, which reads 'hypothyroïdie'; as likely: cp1250 'hypothyroďdie'" in found.doubt
    assert "--encoding NAME" in found.doubt
    path.write_text("hypothyroïdie,y\n1,2\n", encoding="utf-8")
    assert read_table(path).doubt == ""
    path.write_bytes("hypothyroďdie,y\n1,2\n".encode("cp1250"))
    assert read_table(path, TableOptions(encoding="cp1250")).doubt == ""


def test_the_usual_encoding_comes_after_utf_8(tmp_path):
    path, usual = tmp_path / "table.csv", TableOptions(usual_encoding="cp1250")
    for encoding in ("cp1250", "utf-8", "utf-16"):
        path.write_bytes("věk,y\n1,2\n".encode(encoding))
        found = read_table(path, usual)
        assert list(found.frame.columns) == ["věk", "y"]
        assert found.doubt == ""
    path.write_bytes("vek,y\n1,2\n".encode("utf-16-le"))
    assert list(read_table(path, TableOptions(usual_encoding="utf-16-le")).frame.columns) == ["vek", "y"]


@pytest.fixture
def french(tmp_path):
    """Writes a French table under a name in an encoding."""

    def write(name: str, encoding: str, n: int = 80):
        rng = np.random.default_rng(n)
        table = pd.DataFrame({"âge": rng.integers(20, 80, n), "hypothyroïdie": rng.choice(["avérée", "non"], n)})
        table["décès"] = np.where(table["âge"] + 10 * (table["hypothyroïdie"] == "non") > 55, "oui", "non")
        path = tmp_path / name
        table.to_csv(path, index=False, encoding=encoding)
        return path

    return write


def test_a_french_table_is_french_in_every_command(french, tmp_path):
    train, test = french("train.csv", "cp1252"), french("test.csv", "cp1252", 30)
    said = run("prices", train, "-o", tmp_path / "prices.csv", "--target", "décès").stderr
    assert "read as cp1252" in said
    assert "hypothyroïdie" in (tmp_path / "prices.csv").read_text(encoding="utf-8")
    fit = ["fit", train, "--target", "décès", "--train", "logistic", "--prices", tmp_path / "prices.csv"]
    assert "Note: train.csv is not in UTF-8: read as cp1252" in run(*fit, "-o", tmp_path / "s").stderr
    assert list(askwise.load(tmp_path / "s").features_) == ["âge", "hypothyroïdie"]
    run("evaluate", tmp_path / "s", test, "-o", tmp_path / "page.html")
    assert "hypothyroïdie" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_encoding_of_fit_is_kept_with_the_selector(french, tmp_path):
    train, test = french("train.csv", "mac_roman"), french("test.csv", "mac_roman", 30)
    fit = ["fit", train, "--target", "décès", "--train", "logistic", "-o", tmp_path / "s", "--encoding", "mac_roman"]
    run(*fit)
    assert Desk.load(tmp_path / "s", askwise.load(tmp_path / "s")).encoding == "mac_roman"
    for path in (test, french("utf8.csv", "utf-8", 30)):
        run("acquire", tmp_path / "s", path, "-o", tmp_path / "out.csv")
        run("explain", tmp_path / "s", path, "--case", 1)
    wrong = run("acquire", tmp_path / "s", test, "-o", tmp_path / "o.csv", "--encoding", "latin-1", code=2).stderr
    assert "is it in another encoding? Name it, such as --encoding" in " ".join(wrong.split())


def test_a_garbled_column_is_told_from_a_missing_one(french, tmp_path):
    train = french("train.csv", "utf-8")
    told = "is it in another encoding?"
    for command in (
        ["fit", train, "--target", "décès", "--encoding", "cp1250", "-o", tmp_path / "s"],
        ["prices", train, "--target", "décès", "--encoding", "cp1250", "-o", tmp_path / "p.csv"],
    ):
        assert told in " ".join(run(*command, code=2).stderr.split())
    assert told not in run("fit", train, "--target", "mort", "-o", tmp_path / "s", code=2).stderr


def test_binary_content_is_no_text():
    for content in (b"\xff\xfe\x00\x81\n" * 30, bytes(range(256)) * 4):
        with pytest.raises(UnicodeError):
            decoded(content)
    with pytest.raises(InvalidInput, match="there is no encoding 'klingon'"):
        read_table(__file__, TableOptions(encoding="klingon"))
