"""The files of the data home: where each comes from, what its columns are, and the digest of its table."""

from __future__ import annotations

import gzip
from functools import partial

import pandas as pd

from askwise.datasets.home import DataFile
from askwise.datasets.published_prices import read_expenses, read_groups
from askwise.datasets.tables import read_table, unpacked

_ARCHIVE = "ml/machine-learning-databases"


def _words(text: str) -> list[str]:
    return text.split()


HEART_COLUMNS = _words("age sex cp trestbps chol fbs restecg thalach exang oldpeak slope ca thal num")

HEPATITIS_COLUMNS = _words(
    """
    class age sex steroid antviral fatigue malaise anorexia liver_big liver_firm spleen_palpable spiders
    ascites varices bilirubin alk_phosphate sgot albumin protime histology
    """
)

BUPA_COLUMNS = _words("mcv alkphos sgpt sgot gammagt drinks selector")

YEAST_COLUMNS = _words("sequence_name mcg gvh alm mit erl pox vac nuc localization_site")

CIRRHOSIS_COLUMNS = _words(
    """
    ID N_Days Status Drug Age Sex Ascites Hepatomegaly Spiders Edema Bilirubin Cholesterol Albumin Copper
    Alk_Phos SGOT Tryglicerides Platelets Prothrombin Stage
    """
)
CIRRHOSIS_TEXT = _words("Status Drug Sex Ascites Hepatomegaly Spiders Edema")

DIABETES_COLUMNS = _words(
    """
    encounter_id patient_nbr race gender age weight admission_type_id discharge_disposition_id
    admission_source_id time_in_hospital payer_code medical_specialty num_lab_procedures num_procedures
    num_medications number_outpatient number_emergency number_inpatient diag_1 diag_2 diag_3
    number_diagnoses max_glu_serum A1Cresult metformin repaglinide nateglinide chlorpropamide glimepiride
    acetohexamide glipizide glyburide tolbutamide pioglitazone rosiglitazone acarbose miglitol
    troglitazone tolazamide examide citoglipton insulin glyburide-metformin glipizide-metformin
    glimepiride-pioglitazone metformin-rosiglitazone metformin-pioglitazone change diabetesMed readmitted
    """
)
DIABETES_NUMBERS = _words(
    """
    encounter_id patient_nbr time_in_hospital num_lab_procedures num_procedures num_medications
    number_outpatient number_emergency number_inpatient number_diagnoses
    """
)
_DIABETES_CSV = "diabetic_data.csv"


def _read_diabetes(content: bytes) -> pd.DataFrame:
    text = [name for name in DIABETES_COLUMNS if name not in DIABETES_NUMBERS]
    return read_table(unpacked(content, _DIABETES_CSV), DIABETES_COLUMNS, text=text)


def _pack_diabetes(content: bytes) -> bytes:
    return gzip.compress(unpacked(content, _DIABETES_CSV), compresslevel=6, mtime=0)


HEART = DataFile(
    path="tabular/heart/processed.cleveland.data",
    sources=(f"{_ARCHIVE}/heart-disease/processed.cleveland.data",),
    read=partial(read_table, columns=HEART_COLUMNS),
    digest="51fe636ad386f606cfcd34caf2869bc620ec46e1d8956210a9e0842bb9f95646",
)
HEART_EXPENSES = DataFile(
    path="tabular/heart/costs/heart-disease.expense",
    sources=(f"{_ARCHIVE}/heart-disease/costs/heart-disease.expense",),
    read=read_expenses,
    digest="240ca90f0b36d2a6eab6b6d8bc9ea60cd668f3a857901cacd231ea6e1850e641",
)
HEART_GROUPS = DataFile(
    path="tabular/heart/costs/heart-disease.group",
    sources=(f"{_ARCHIVE}/heart-disease/costs/heart-disease.group",),
    read=read_groups,
    digest="43be9574ecf94636fc4bd5514e364a5dcf4fd31097a8d8676a9e9509921f0753",
)
HEPATITIS = DataFile(
    path="tabular/hepatitis/hepatitis.data",
    sources=(f"{_ARCHIVE}/hepatitis/hepatitis.data",),
    read=partial(read_table, columns=HEPATITIS_COLUMNS),
    digest="16d151bb1f43d023fa13fa4333cab263735a8dbfd32dcc96f3293210bf5372c2",
)
HEPATITIS_EXPENSES = DataFile(
    path="tabular/hepatitis/costs/hepatitis.expense",
    sources=(f"{_ARCHIVE}/hepatitis/costs/hepatitis.expense",),
    read=read_expenses,
    digest="b15c75133facac0e1e8c8714cde56a476e8fbd6622837383f24799ef3e24a1b9",
)
HEPATITIS_GROUPS = DataFile(
    path="tabular/hepatitis/costs/hepatitis.group",
    sources=(f"{_ARCHIVE}/hepatitis/costs/hepatitis.group",),
    read=read_groups,
    digest="2fed6109b563d953af4f2b4095776631edd76c39cda651342ff99671940cee1a",
)
BUPA = DataFile(
    path="tabular/bupa/bupa.data",
    sources=(f"{_ARCHIVE}/liver-disorders/bupa.data",),
    read=partial(read_table, columns=BUPA_COLUMNS),
    digest="334373010a7be58cb28163d474283b85f38dc073472e4f909c7ac253c700e9d4",
)
BUPA_EXPENSES = DataFile(
    path="tabular/bupa/costs/bupa.expense",
    sources=(
        f"{_ARCHIVE}/liver-disorders/costs/bupa-liver.expense",
        f"{_ARCHIVE}/liver-disorders/costs/bupa.expense",
    ),
    read=read_expenses,
    digest="7d8e2308a8cfcee7e55850432f8e1be1415565adab2a3a20480910cff0b49d23",
)
BUPA_GROUPS = DataFile(
    path="tabular/bupa/costs/bupa.group",
    sources=(
        f"{_ARCHIVE}/liver-disorders/costs/bupa-liver.group",
        f"{_ARCHIVE}/liver-disorders/costs/bupa.group",
    ),
    read=read_groups,
    digest="5c7d9c02341ee3a90613b06ad26e6a9a53d4080562516d4ae9b6b675dea9d0d7",
)
YEAST = DataFile(
    path="tabular/yeast/yeast.data",
    sources=(f"{_ARCHIVE}/yeast/yeast.data",),
    read=partial(read_table, columns=YEAST_COLUMNS, text=("sequence_name", "localization_site"), separator=r"\s+"),
    digest="f0aec1d5ed90c7a9f13ad355a2b7379817691579e2ff66078224a16bc941fec3",
)
CIRRHOSIS = DataFile(
    path="tabular/cirrhosis/cirrhosis.csv",
    sources=("static/public/878/data.csv",),
    read=partial(read_table, columns=CIRRHOSIS_COLUMNS, text=CIRRHOSIS_TEXT),
    digest="3abc5276fec43012ae493814ac6030b1dfe2c3138fac02f435dd50494f11a635",
)
DIABETES = DataFile(
    path="tabular/diabetes130/diabetic_data.csv.gz",
    sources=("static/public/296/diabetes+130-us+hospitals+for+years+1999-2008.zip",),
    read=_read_diabetes,
    digest="c34011bec16b7f7c1850701077595ecdce5ea03d29b0f6a0f2b12fe052bfb1a2",
    pack=_pack_diabetes,
)
