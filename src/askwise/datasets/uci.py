"""Six medical and biological tables of the UCI repository, three of them with real prices."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from askwise.datasets import sources
from askwise.datasets.dataset import Dataset
from askwise.datasets.home import fetch
from askwise.datasets.published_prices import published_prices, published_times
from askwise.errors import InvalidInput

_PRICES = """Prices in Canadian dollars: Turney (1995), Journal of Artificial Intelligence Research 2:369-409;
tests that share a cost (drawing blood, one exercise test) are cheaper once another of them has been
ordered."""

HEART = f"""Heart disease, Cleveland: 303 patients. Detrano et al. (1989), American Journal of Cardiology
64:304-310, UCI 45. Categories (sex, cp, fbs, restecg, exang, slope, thal) are kept as the numeric codes of
the original. Label: 1 = heart disease (the original `num` > 0). {_PRICES}"""

HEPATITIS = f"""Hepatitis: will the patient live? 155 patients, G. Gong (1988), UCI 46. Yes-or-no answers are
kept as the numeric codes of the original (1 = no, 2 = yes; sex 1 = male, 2 = female). Labels: die, live.
{_PRICES}"""

BUPA = f"""Liver disorders: 345 men, five blood tests that react to alcohol. BUPA Medical Research, R. Forsyth
(1990), UCI 60. Label: 1 = three or more half-pint equivalents of alcoholic drinks a day. The column
`selector` of the original divides training from test rows and is not a class; it is left out. {_PRICES}"""

YEAST = """Yeast: where in the cell 1,484 proteins are found, from 8 scores of their sequence. Nakai (1991),
UCI 110. Labels: ten sites, from CYT (463) down to ERL (5)."""

CIRRHOSIS = """Cirrhosis: the Mayo Clinic trial of primary biliary cirrhosis, 418 patients, 17 features.
Fleming and Harrington (1991), Counting Processes and Survival Analysis, appendix D; UCI 878. Labels: C =
alive at the end of the study, CL = alive until a liver transplant, D = dead. `N_Days`, the time of
observation, tells the label and is left out. Age in days. 106 patients were not in the trial proper and lack
most tests."""

DIABETES130 = """Diabetes in 130 US hospitals, 1999-2008: 101,766 stays of 71,518 patients, 47 features.
Strack et al. (2014), BioMed Research International 781670, UCI 296. Label: 1 = readmitted ({meaning}). Rows
of one patient are not independent: `row_groups` holds the patient's number, for splitting. Codes such as
`admission_type_id` and the diagnoses are categories, hence strings. `None` in max_glu_serum and A1Cresult is
a value (not measured); weight is missing in 97 % of the rows."""

_MEANING_OF_TARGET = {"readmitted": "at any time later", "within_30_days": "within 30 days"}


def load_heart() -> Dataset:
    """Heart: 303 rows, 13 features, 2 classes, prices."""
    table = fetch(sources.HEART)
    y = (table["num"] > 0).to_numpy(dtype=int)
    prices = published_prices(*map(fetch, sources.HEART_PRICES))
    prices.time = published_times(fetch(sources.HEART_DELAYS))
    return Dataset("heart", table.drop(columns="num"), y, prices, None, HEART)


def load_hepatitis() -> Dataset:
    """Hepatitis: 155 rows, 19 features, 2 classes, prices."""
    table = fetch(sources.HEPATITIS)
    y = table["class"].map({1.0: "die", 2.0: "live"}).to_numpy(dtype=str)
    prices = published_prices(*map(fetch, sources.HEPATITIS_PRICES))
    return Dataset("hepatitis", table.drop(columns="class"), y, prices, None, HEPATITIS)


def load_bupa() -> Dataset:
    """Bupa: 345 rows, 5 features, 2 classes, prices."""
    table = fetch(sources.BUPA)
    y = (table["drinks"] >= 3).to_numpy(dtype=int)
    prices = published_prices(*map(fetch, sources.BUPA_PRICES))
    return Dataset("bupa", table.drop(columns=["drinks", "selector"]), y, prices, None, BUPA)


def load_yeast() -> Dataset:
    """Yeast: 1,484 rows, 8 features, 10 classes."""
    table = fetch(sources.YEAST)
    y = table["localization_site"].to_numpy(dtype=str)
    X = table.drop(columns=["sequence_name", "localization_site"])
    return Dataset("yeast", X, y, None, None, YEAST)


def load_cirrhosis() -> Dataset:
    """Cirrhosis: 418 rows, 17 features, 3 classes."""
    table = fetch(sources.CIRRHOSIS)
    y = table["Status"].to_numpy(dtype=str)
    return Dataset("cirrhosis", table.drop(columns=["ID", "N_Days", "Status"]), y, None, None, CIRRHOSIS)


def load_diabetes130(target: Literal["readmitted", "within_30_days"] = "readmitted") -> Dataset:
    """Diabetes130: 101,766 rows, 47 features, 2 classes.

    Parameters
    ----------
    target
        What the label 1 means: readmitted at any time later, or within 30 days.
    """
    if not isinstance(target, str) or target not in _MEANING_OF_TARGET:
        allowed = " or ".join(map(repr, _MEANING_OF_TARGET))
        raise InvalidInput(f"load('diabetes130'): target must be {allowed}; got {target!r}.")
    table = fetch(sources.DIABETES)
    y = _readmitted(table["readmitted"], target)
    patients = table["patient_nbr"].to_numpy(dtype="int64")
    X = table.drop(columns=["encounter_id", "patient_nbr", "readmitted"])
    description = DIABETES130.format(meaning=_MEANING_OF_TARGET[target])
    return Dataset("diabetes130", X, y, None, None, description, row_groups=patients)


def _readmitted(outcome: pd.Series, target: str) -> np.ndarray:
    positive = outcome == "<30" if target == "within_30_days" else outcome != "NO"
    return positive.to_numpy(dtype=int)
