"""The page in a real browser, on the heart data: the work at a desk, what goes wrong there, and how it looks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.web.browser import axe_script, chromium, served
from tests.web.heart_desk import save_heart

PAGE = Path(__file__).parents[2] / "src" / "askwise" / "web" / "page"
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}
NUMBERS = {
    "Age": "61",
    "Cholesterol": "240",
    "Vessels seen in fluoroscopy": "1",
    "ST depression in exercise ECG": "1.5",
}


@pytest.fixture(scope="module")
def heart(tmp_path_factory):
    path = tmp_path_factory.mktemp("heart") / "selector"
    save_heart(path)
    return path


@pytest.fixture(scope="module")
def address(heart):
    with served(heart) as found:
        yield found


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture
def open_page(browser):
    """Pages that fail the test if the console shows an error, or if anything is asked of another host."""
    contexts, complaints = [], []

    def opened(address, **options):
        context = browser.new_context(**{"viewport": DESK, "locale": "en-US", **options})
        contexts.append(context)
        context.set_default_timeout(30_000)  # for a busy machine
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text) if "Content Security" in said.text else None)
        page.on(
            "request", lambda asked: None if asked.url.startswith((address, "blob:")) else complaints.append(asked.url)
        )
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not complaints


def start(page, label="Patient 7", budget="", **known):
    page.goto(page.url.split("#")[0] + "#/new")
    page.fill("#label", label)
    page.fill("input[name=budget]", budget)
    for name, value in known.items():
        page.fill(f"input[name={name}]", value)
    page.get_by_role("button", name="Start the case").click()
    page.wait_for_selector(".case")


def steps(page):
    """The tests of the table of steps."""
    return page.locator(".steps tbody th").all_inner_texts()


def fill(page):
    """Type a usual value, or choose the last category, for the test that is asked for; its name."""
    name = page.locator("#next-title").inner_text()
    if page.locator(".next .choice").count():
        page.locator(".next .choice").last.click()
    else:
        page.locator(".next input").first.fill(NUMBERS.get(name, "140"))
    return name


def answer(page):
    name = fill(page)
    page.keyboard.press("Enter")
    page.locator(".steps tbody th", has_text=re.compile(f"^{re.escape(name)}$")).wait_for()
    return name


def choose(page, name):
    show_all = page.get_by_role("button", name="Show all")
    if show_all.count():
        show_all.click()
    page.locator(".ranking button", has_text=name).click()
    page.locator("#next-title", has_text=name).wait_for()


def focused(page):
    return page.evaluate("document.activeElement.closest('.next form') !== null")


def test_a_case_from_its_start_to_its_end(address, open_page):
    page = open_page(address)
    start(page, budget="300", age="61")
    assert page.locator(".eyebrow").first.inner_text() == "Suggested next test"
    assert page.locator(".next .price").inner_text() == "CA$1.00"
    asked = []
    for _ in range(3):
        assert focused(page)
        asked.append(answer(page))
    assert steps(page) == ["Age", *asked]
    assert page.locator(".history polyline").count() == 2

    page.keyboard.press("Alt+u")
    page.locator("#next-title", has_text=asked[-1]).wait_for()
    assert steps(page) == ["Age", *asked[:-1]]
    page.keyboard.press("Alt+x")
    page.locator(".steps .unavailable th", has_text=asked[-1]).wait_for()
    assert asked[-1] not in page.locator(".ranking").inner_text()

    choose(page, "Cholesterol")
    assert page.locator(".next .eyebrow").inner_text() == "Your choice"
    page.keyboard.type("9000")
    page.keyboard.press("Enter")
    page.locator(".next .notice.warn", has_text="Cholesterol: 9000 mg/dl is outside.").wait_for()
    assert page.evaluate("document.activeElement.textContent") == "Change the value"  # a second Enter does not confirm
    page.keyboard.press("Enter")
    assert focused(page)
    assert page.locator(".next input").input_value() == "9000"
    assert "Cholesterol" not in steps(page)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="It is correct, save it").click()
    page.locator(".prediction .notice.warn", has_text="outside everything the model has seen").wait_for()
    assert steps(page)[-1] == "Cholesterol"

    before, where = steps(page), page.url
    page.reload()
    page.wait_for_selector(".case")
    assert (steps(page), page.url) == (before, where)
    spent = page.locator(".money strong").all_inner_texts()
    assert len(spent) == 2, "dollars and hours"
    page.keyboard.press("Alt+c")
    page.locator("h2", has_text="This case is finished").wait_for()
    assert not page.locator(".next").count()
    page.get_by_role("button", name="Reopen case").click()
    page.wait_for_selector(".next")
    assert page.locator(".money strong").all_inner_texts() == spent


def test_the_list_is_searched_and_a_case_is_deleted_for_good(address, open_page):
    page = open_page(address)
    for label in ("Ward 3", "Ward 4", "<img src=x onerror=alert(1)>"):
        start(page, label)
    assert page.locator("h1").inner_text() == "<img src=x onerror=alert(1)>"
    page.keyboard.press("Alt+l")
    page.locator(".cases a", has_text="<img src=x").wait_for()
    page.keyboard.press("Alt+s")
    page.keyboard.type("ward")
    page.locator(".cases a", has_text="<img").wait_for(state="detached")
    assert sorted(page.locator(".cases a").all_inner_texts()) == ["Ward 3", "Ward 4"]
    page.locator(".cases a", has_text="Ward 3").click()
    for button in ("Cancel", "Delete for good"):
        page.locator("#delete").click()
        page.get_by_role("button", name=button).click()
        page.locator("dialog").wait_for(state="detached")
    page.locator(".cases a", has_text="Ward 4").wait_for()
    assert page.locator(".cases a").all_inner_texts() == ["Ward 4"]


def test_advice_to_stop_says_what_is_guaranteed(address, open_page):
    page = open_page(address)
    start(page)
    while not page.locator("#advice").count():
        answer(page)
    assert page.locator("#advice").inner_text() == "You can stop here"
    assert page.evaluate("document.activeElement.id") == "advice"
    assert page.locator(".advice blockquote").inner_text().startswith("Guaranteed with 90% confidence")
    choose(page, page.locator(".ranking .test").first.inner_text())  # the advice need not be taken
    answer(page)
    assert page.locator(".prediction details p").text_content().startswith("The guarantee does not hold for this case")


def test_a_case_finished_by_hand_has_no_guarantee(address, open_page):
    page = open_page(address)
    start(page)
    assert page.locator(".next-title, #next-title").count()
    page.locator("#finish").click()
    page.locator("#reopen").wait_for()
    said = page.locator(".advice blockquote").inner_text()
    assert said == "No guarantee: the case was finished before the stopping rule stopped it."
    assert page.locator(".prediction details summary").inner_text() == "Why nothing is guaranteed"
    assert "Guaranteed with" not in page.locator("#main").text_content()


def test_a_case_unlike_all_others_shows_no_probability(address, open_page):
    page = open_page(address)
    start(page)
    choose(page, "Cholesterol")
    page.locator(".next input").fill("9000")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="It is correct, save it").click()
    page.locator(".prediction .notice", has_text="outside everything").wait_for()
    assert page.locator(".verdict strong").inner_text() == "not reliable"
    assert not re.search(r"\d%", page.locator(".classes").inner_text() + page.locator(".steps tr").last.inner_text())
    assert "does not hold" in page.locator(".prediction details p").text_content()


def test_a_range_is_called_what_it_is_and_a_namesake_is_told_of(address, open_page):
    page = open_page(address)
    start(page, label="Twice")
    start(page, label="twice")
    assert page.locator("#namesakes").inner_text().startswith("There is another case of this name.")
    choose(page, "Cholesterol")
    assert page.locator(".next .field .hint").inner_text().startswith("Range seen in training: 126 to 564")


def test_a_new_case_says_what_everything_costs_and_what_voids_the_guarantee(address, open_page):
    page = open_page(address)
    page.goto(page.url.split("#")[0] + "#/new")
    page.locator("#label").wait_for()
    hints = " ".join(page.locator(".start .hint").all_inner_texts())
    assert "All tests together cost CA$323.97." in hints  # exercise and needle are paid once
    assert "The guarantee does not hold for a case that starts with" in hints


def test_why_shows_where_the_likely_answers_lead(address, open_page):
    page = open_page(address)
    start(page)
    page.keyboard.press("Alt+w")
    table = page.locator(".why table")
    table.wait_for()
    assert table.locator("tbody tr").count() >= 2
    assert re.search(r"(changes to|stays) (no )?disease, \d+%", table.inner_text())


def test_a_newer_state_is_shown_and_nothing_typed_is_lost(address, open_page):
    page = open_page(address)
    start(page)
    case = f"{address}api/cases/{page.url.split('/')[-1]}"

    def elsewhere(**event):
        version = httpx2.get(case).json()["version"]
        assert httpx2.post(f"{case}/events", json={**event, "version": version}).status_code == 200

    choose(page, "Cholesterol")
    page.keyboard.type("251")
    elsewhere(type="unavailable", feature="thal")
    page.keyboard.press("Enter")
    page.locator(".notice", has_text="Somebody else changed this case").wait_for()
    assert page.locator(".steps .unavailable th").all_inner_texts() == ["Thallium scan"]
    assert page.locator(".next input").input_value() == "251"
    page.keyboard.press("Enter")
    page.locator(".steps td", has_text="251 mg/dl").wait_for()
    choose(page, "Resting blood pressure")
    page.keyboard.type("133")
    elsewhere(type="answer", feature="trestbps", value=150)
    page.keyboard.press("Enter")
    page.locator(".notice", has_text="You had typed 133 mm Hg").wait_for()
    assert page.locator(".steps td", has_text="150 mm Hg").count() == 1


def test_an_answer_that_is_lost_is_sent_again_and_stored_once(address, open_page):
    page = open_page(address)
    start(page)
    keys = []

    def lose(route):
        keys.append(route.request.headers["idempotency-key"])
        route.fetch()
        route.abort()

    page.route("**/events", lose)
    choose(page, "Cholesterol")
    page.keyboard.type("251")
    page.keyboard.press("Enter")
    page.locator(".notice.bad", has_text="cannot be reached").wait_for()
    assert page.locator(".next input").input_value() == "251"
    page.unroute("**/events")
    page.on("request", lambda asked: keys.append(asked.headers.get("idempotency-key")))
    page.locator(".next button.primary").click()
    page.locator(".steps td", has_text="251 mg/dl").wait_for()
    assert len(set(keys)) == 1
    assert steps(page) == ["Start", "Cholesterol"]


def test_bad_values_are_refused_beside_their_field(address, open_page):
    page = open_page(address)
    start(page)
    choose(page, "Cholesterol")
    for typed, said in (
        ("", "Enter a value, or mark"),
        ("two", "“two” is not a number."),
        ("1,2,3", "is not a number"),
    ):
        page.locator(".next input").fill(typed)
        page.keyboard.press("Enter")
        page.locator(".next .problem", has_text=said).wait_for()
        assert focused(page)
    page.locator(".next input").fill("251,5")  # a decimal comma is read
    page.keyboard.press("Enter")
    page.locator(".steps td", has_text="251.5 mg/dl").wait_for()
    page.goto(address + "#/case/" + 32 * "0")
    page.locator(".notice.bad", has_text="There is no such case").wait_for()


def test_language_and_colors_are_chosen_and_remembered(address, open_page):
    page = open_page(address, color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(17, 23, 25)"
    page.get_by_role("button", name="Light").click()
    assert page.evaluate(background) == "rgb(243, 245, 244)"
    start(page)
    choose(page, "Cholesterol")
    page.keyboard.type("251")
    page.locator("#language").select_option("de")
    page.locator(".next .eyebrow", has_text="Ihre Wahl").wait_for()
    assert page.locator(".next input").input_value() == "251"
    assert page.locator(".next .price").inner_text().split("\n") == ["7,27\xa0CA$", "1 Std."]
    page.reload()
    page.locator("#finish", has_text="Fall abschließen").wait_for()
    assert page.evaluate("document.documentElement.lang") == "de"
    assert page.evaluate(background) == "rgb(243, 245, 244)"
    assert open_page(address, locale="de-CH").locator("h1").inner_text() == "Fälle"


def test_a_token_is_asked_for_and_forgotten_and_groups_are_entered_column_by_column(folder, tmp_path, open_page):
    tokens = tmp_path / "tokens"
    tokens.write_text("ward 3:a-token-that-is-long-enough\n")
    with served(folder, tokens) as address:
        page = open_page(address)
        for token in ("a-token-that-is-made-up", "a-token-that-is-long-enough"):
            page.fill("#token", token)
            page.keyboard.press("Enter")
            page.locator(
                ".notice.bad" if "made" in token else "h1", has_text=re.compile("does not accept|Cases")
            ).wait_for()
        start(page)
        assert "by ward 3" in page.locator(".title").inner_text()
        choose(page, "Blood test")
        page.get_by_label("iron").fill("0.5")
        page.keyboard.press("Enter")
        page.locator(".steps tr", has_text="Blood test").get_by_text("iron 0.5", exact=True).wait_for()
        page.reload()
        page.wait_for_selector(".case")
        page.get_by_role("button", name="Log out").click()
        page.wait_for_selector("#token")
        assert page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]


def test_print_shows_the_result_and_no_controls(address, open_page):
    page = open_page(address)
    start(page)
    answer(page)
    page.emulate_media(media="print")
    seen = {
        name: page.locator(name).first.is_visible()
        for name in (".verdict", ".steps", ".top", ".next", "button", ".foot")
    }
    assert seen == {".verdict": True, ".steps": True, ".top": False, ".next": False, "button": False, ".foot": True}


def views(page):
    """Every view and dialog, one after the other."""
    yield "list"
    page.goto(page.url.split("#")[0] + "#/new")
    page.wait_for_selector(".start")
    yield "new"
    start(page, budget="120", age="61")
    page.locator("#why summary").click()
    yield "case"
    choose(page, "Cholesterol")
    page.keyboard.type("9000")
    page.keyboard.press("Enter")
    page.wait_for_selector(".next .notice")
    yield "warning"
    page.locator(".next button.warn").click()
    page.wait_for_selector(".history")
    yield "steps"
    page.keyboard.press("Alt+k")
    yield "keyboard"
    page.keyboard.press("Escape")
    page.locator("#delete").click()
    yield "delete"
    page.keyboard.press("Escape")
    page.locator("#finish").click()
    page.wait_for_selector("#reopen")
    yield "finished"
    page.goto(page.url.split("#")[0] + "#/case/" + 32 * "0")
    page.wait_for_selector(".notice.bad")
    yield "no such case"
    start(page)
    while not page.locator("#advice").count():
        answer(page)
    yield "stop"
    page.route("**/api/**", lambda route: route.fulfill(status=401, json={"error": {"field": None, "message": ""}}))
    page.goto(page.url.split("#")[0] + "#/new")
    page.goto(page.url.split("#")[0] + "#/")
    page.wait_for_selector("#token")
    yield "login"
    page.unroute("**/api/**")
    page.goto(page.url.split("#")[0] + "#/new")
    page.wait_for_selector(".start")
    page.goto(page.url.split("#")[0] + "#/")
    page.locator(".filters .choice").last.click()
    page.wait_for_selector(".cases td")
    yield "cases"


def test_no_view_violates_wcag_or_scrolls_sideways(address, open_page):
    script = axe_script()
    found, wide = [], []
    looks: dict[str, dict[str, Any]] = {
        "light": {},
        "dark": {"color_scheme": "dark"},
        "phone": {"viewport": PHONE, "has_touch": True},
    }
    for look, options in looks.items():
        page = open_page(address, reduced_motion="reduce", **options)
        page.wait_for_selector("h1")
        page.evaluate(script)
        for view in views(page):
            broken = page.evaluate("axe.run(document, {resultTypes: ['violations']}).then(found => found.violations)")
            found += [f"{look} {view}: {one['help']} {one['nodes'][0]['html']}" for one in broken]
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                wide.append(f"{look} {view}")
    assert not found
    assert not wide
    page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert page.evaluate("axe.run().then(found => found.violations[0].id)") == "button-name"  # the checker does check


def test_the_languages_have_the_same_words():
    words = {path.stem: json.loads(path.read_text()) for path in (PAGE / "words").glob("*.json")}
    offered = re.findall(r'<option value="(\w+)"', (PAGE / "index.html").read_text())
    assert sorted(words) == sorted(offered) == ["de", "en"]
    assert words["de"].keys() == words["en"].keys()
    for key, text in words["en"].items():
        assert set(re.findall(r"{\w+}", words["de"][key])) == set(re.findall(r"{\w+}", text)), key
    source = "".join(path.read_text() for path in PAGE.glob("*.js"))
    used = set(re.findall(r'\bt\("([^"]+)"', source))
    known = {key.removesuffix(".one").removesuffix(".other") for key in words["en"]}
    assert used <= known


def test_a_result_comes_later_and_other_tests_are_asked_meanwhile(address, open_page):
    page = open_page(address)
    page.goto(address + "#/new")
    page.wait_for_selector("#deadline")  # the published delays are in the prices
    page.fill("#deadline", "23:59")
    start(page, budget="300", age="61")
    choose(page, "Cholesterol")
    page.get_by_role("button", name="Ordered, result later").click()
    page.locator(".pending button", has_text="Cholesterol").wait_for()
    assert re.search(r"ordered .+, expected .+", page.locator(".pending .ranking").inner_text())
    assert steps(page) == ["Age", "Cholesterol"]
    assert page.locator(".steps .order td").nth(1).inner_text() == "ordered"
    assert "Cholesterol" not in page.locator(".others").inner_text()
    assert page.locator("#next-title").inner_text() != "Cholesterol"
    meanwhile = answer(page)
    page.locator(".pending button", has_text="Cholesterol").click()
    page.locator("#next-title", has_text="Cholesterol").wait_for()
    assert page.locator(".next .price").inner_text() == "paid"
    assert not page.locator("#order").count()
    page.fill(".next input", "250")
    page.keyboard.press("Enter")
    page.locator(".pending").wait_for(state="detached")
    assert steps(page) == ["Age", "Cholesterol", meanwhile, "Cholesterol"]


def test_a_bar_for_each_resource(address, open_page):
    """The published delays are times; a case is limited in money and in time."""
    page = open_page(address)
    page.goto(address + "#/new")
    page.wait_for_selector("#label")
    page.fill("input[name=budget-time]", "1,5")
    start(page, budget="300", age="61")
    assert page.locator(".purse").count() == 2
    time = page.locator(".purse[data-resource=time]")
    assert "0 h spent of 1.5 h" in time.inner_text()
    assert page.locator(".purse[data-resource=money]").inner_text().count("CA$300.00")
    choose(page, "Cholesterol")
    page.get_by_role("button", name="Ordered, result later").click()
    page.locator(".pending button", has_text="Cholesterol").wait_for()
    assert "0 h spent" in time.inner_text()  # it is out, and so is what is ordered meanwhile
    page.locator(".pending button", has_text="Cholesterol").click()
    page.locator("#next-title", has_text="Cholesterol").wait_for()
    page.fill(".next input", "250")
    page.keyboard.press("Enter")
    page.locator(".pending").wait_for(state="detached")
    assert "1 h spent of 1.5 h" in time.inner_text()
    assert time.locator("[role=meter]").get_attribute("aria-valuenow") == "1"
    assert time.locator("[role=meter]").get_attribute("aria-label") == "Budget: Time"
    over = page.locator(".others .over").all_inner_texts()
    assert any(text.startswith("Thallium scan") and "over budget" in text for text in over)
    assert not any(text.startswith("Resting blood pressure") for text in over)
    if page.locator("#unavailable").count():
        assert "h" not in page.locator(".next .price").inner_text().split()  # what is left takes no time
