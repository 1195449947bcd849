"""The files of the data home: where each comes from, what its columns are, and the digest of its table."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import partial

import pandas as pd

from askwise.datasets.home import DataFile, unchanged
from askwise.datasets.published_prices import read_delays, read_expenses, read_groups
from askwise.datasets.tables import read_table, unpacked

_ARCHIVE = "ml/machine-learning-databases"

HEART_COLUMNS = "age sex cp trestbps chol fbs restecg thalach exang oldpeak slope ca thal num"

HEPATITIS_COLUMNS = """class age sex steroid antviral fatigue malaise anorexia liver_big liver_firm spleen_palpable
spiders ascites varices bilirubin alk_phosphate sgot albumin protime histology"""

BUPA_COLUMNS = "mcv alkphos sgpt sgot gammagt drinks selector"

YEAST_COLUMNS = "sequence_name mcg gvh alm mit erl pox vac nuc localization_site"

CIRRHOSIS_COLUMNS = """ID N_Days Status Drug Age Sex Ascites Hepatomegaly Spiders Edema Bilirubin Cholesterol Albumin
Copper Alk_Phos SGOT Tryglicerides Platelets Prothrombin Stage"""
CIRRHOSIS_TEXT = "Status Drug Sex Ascites Hepatomegaly Spiders Edema"

DIABETES_COLUMNS = """encounter_id patient_nbr race gender age weight admission_type_id discharge_disposition_id
admission_source_id time_in_hospital payer_code medical_specialty num_lab_procedures num_procedures
num_medications number_outpatient number_emergency number_inpatient diag_1 diag_2 diag_3
number_diagnoses max_glu_serum A1Cresult metformin repaglinide nateglinide chlorpropamide glimepiride
acetohexamide glipizide glyburide tolbutamide pioglitazone rosiglitazone acarbose miglitol
troglitazone tolazamide examide citoglipton insulin glyburide-metformin glipizide-metformin
glimepiride-pioglitazone metformin-rosiglitazone metformin-pioglitazone change diabetesMed readmitted"""
DIABETES_NUMBERS = """encounter_id patient_nbr time_in_hospital num_lab_procedures num_procedures num_medications
number_outpatient number_emergency number_inpatient number_diagnoses"""
_DIABETES_CSV = "diabetic_data.csv"


def _read_diabetes(content: bytes) -> pd.DataFrame:
    text = set(DIABETES_COLUMNS.split()) - set(DIABETES_NUMBERS.split())
    return read_table(unpacked(content, _DIABETES_CSV), DIABETES_COLUMNS.split(), text=text)


def _pack_diabetes(content: bytes) -> bytes:
    return gzip.compress(unpacked(content, _DIABETES_CSV), compresslevel=6, mtime=0)


DIGESTS = {
    "heart/processed.cleveland.data": "51fe636ad386f606cfcd34caf2869bc620ec46e1d8956210a9e0842bb9f95646",
    "heart/costs/heart-disease.expense": "240ca90f0b36d2a6eab6b6d8bc9ea60cd668f3a857901cacd231ea6e1850e641",
    "heart/costs/heart-disease.group": "43be9574ecf94636fc4bd5514e364a5dcf4fd31097a8d8676a9e9509921f0753",
    "heart/costs/heart-disease.delay": "d37554feb44b1055c2618d147cc9549fc6c1145fe996c08655e8348d4238709a",
    "hepatitis/hepatitis.data": "16d151bb1f43d023fa13fa4333cab263735a8dbfd32dcc96f3293210bf5372c2",
    "hepatitis/costs/hepatitis.expense": "b15c75133facac0e1e8c8714cde56a476e8fbd6622837383f24799ef3e24a1b9",
    "hepatitis/costs/hepatitis.group": "2fed6109b563d953af4f2b4095776631edd76c39cda651342ff99671940cee1a",
    "bupa/bupa.data": "334373010a7be58cb28163d474283b85f38dc073472e4f909c7ac253c700e9d4",
    "bupa/costs/bupa.expense": "7d8e2308a8cfcee7e55850432f8e1be1415565adab2a3a20480910cff0b49d23",
    "bupa/costs/bupa.group": "5c7d9c02341ee3a90613b06ad26e6a9a53d4080562516d4ae9b6b675dea9d0d7",
    "yeast/yeast.data": "f0aec1d5ed90c7a9f13ad355a2b7379817691579e2ff66078224a16bc941fec3",
    "cirrhosis/cirrhosis.csv": "3abc5276fec43012ae493814ac6030b1dfe2c3138fac02f435dd50494f11a635",
    "diabetes130/diabetic_data.csv.gz": "c34011bec16b7f7c1850701077595ecdce5ea03d29b0f6a0f2b12fe052bfb1a2",
}
"""Of the tables, by their place in the folder `tabular` of the data home."""

Read = Callable[[bytes], pd.DataFrame]


def _file(path: str, read: Read, *sources: str, pack: Callable[[bytes], bytes] = unchanged) -> DataFile[pd.DataFrame]:
    return DataFile(f"tabular/{path}", sources, read, DIGESTS[path], pack)


def _prices(path: str, *sources: str) -> tuple[DataFile[pd.DataFrame], DataFile[pd.DataFrame]]:
    """The prices and their groups, two files of one name below UCI's archive."""
    expenses, groups = (
        _file(f"{path}.{end}", read, *(f"{_ARCHIVE}/{source}.{end}" for source in sources))
        for end, read in (("expense", read_expenses), ("group", read_groups))
    )
    return expenses, groups


def _table(path: str, source: str, columns: str, text: str = "", separator: str = ",") -> DataFile[pd.DataFrame]:
    read = partial(read_table, columns=columns.split(), text=text.split(), separator=separator)
    return _file(path, read, source)


HEART = _table("heart/processed.cleveland.data", f"{_ARCHIVE}/heart-disease/processed.cleveland.data", HEART_COLUMNS)
HEART_PRICES = _prices("heart/costs/heart-disease", "heart-disease/costs/heart-disease")
HEART_DELAYS = _file(
    "heart/costs/heart-disease.delay", read_delays, f"{_ARCHIVE}/heart-disease/costs/heart-disease.delay"
)
HEPATITIS = _table("hepatitis/hepatitis.data", f"{_ARCHIVE}/hepatitis/hepatitis.data", HEPATITIS_COLUMNS)
HEPATITIS_PRICES = _prices("hepatitis/costs/hepatitis", "hepatitis/costs/hepatitis")
BUPA = _table("bupa/bupa.data", f"{_ARCHIVE}/liver-disorders/bupa.data", BUPA_COLUMNS)
BUPA_PRICES = _prices("bupa/costs/bupa", "liver-disorders/costs/bupa-liver", "liver-disorders/costs/bupa")
YEAST = _table(
    "yeast/yeast.data", f"{_ARCHIVE}/yeast/yeast.data", YEAST_COLUMNS, "sequence_name localization_site", r"\s+"
)
CIRRHOSIS = _table("cirrhosis/cirrhosis.csv", "static/public/878/data.csv", CIRRHOSIS_COLUMNS, CIRRHOSIS_TEXT)
DIABETES = _file(
    "diabetes130/diabetic_data.csv.gz",
    _read_diabetes,
    "static/public/296/diabetes+130-us+hospitals+for+years+1999-2008.zip",
    pack=_pack_diabetes,
)
