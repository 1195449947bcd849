"""The page of a checked case and that of the promise, in a real browser: what they say, and that all can read it."""

import pytest
from tests.web.browser import axe_script, chromium
from tests.web.test_checks import advised, fitted, patients, rows_of, stopping, worked

pytest.importorskip("fastapi")

import http.client
import json
import threading
import time

import uvicorn

import askwise
from askwise.web.app import create_app
from askwise.web.database import migrate
from askwise.web.settings import Settings

DESK, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}


class Client:
    """What the helpers of `test_checks` send, over a connection to a running server."""

    def __init__(self, port):
        self.port = port

    def post(self, path, json):
        return self._ask("POST", path, json)

    def _ask(self, method, path, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
        return Answer(connection.getresponse())


class Answer:
    def __init__(self, response):
        self.status_code, self.text = response.status, response.read().decode()

    def json(self):
        return json.loads(self.text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("shown") / "selector"
    fitted(subgroups="sex").save(path)
    return path


@pytest.fixture(scope="module")
def server(folder, tmp_path_factory):
    settings = Settings(str(folder), f"sqlite:///{tmp_path_factory.mktemp('cases')}/cases.sqlite3", rate=0, check=1.0)
    migrate(settings.url)
    running = uvicorn.Server(
        uvicorn.Config(create_app(askwise.load(folder), settings), port=0, log_config=None, access_log=False)
    )
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        assert thread.is_alive(), "the server has not started"
        time.sleep(0.02)
    yield Client(running.servers[0].sockets[0].getsockname()[1])
    running.should_exit = True
    thread.join(10)


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


def opened(browser, server, where, **options):
    context = browser.new_context(**{"viewport": DESK, "locale": "en-US", "has_touch": True, **options})
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{server.port}/{where}")
    page.wait_for_selector("#title")
    return page


def check_that_all_can_read(page):
    page.evaluate(axe_script())
    found = page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa']})")
    assert [one["id"] for one in found["violations"]] == []


def test_a_checked_case_says_why_questions_go_on_and_what_came_of_it(browser, server, folder):
    row = stopping(askwise.load(folder), 1)[0]
    case = advised(server, row)
    page = opened(browser, server, f"#/case/{case['id']}")
    notice = page.locator("#check")
    assert "Check of the promise: please go on. The advice was to stop here with" in notice.inner_text()
    assert "it then does not count as checked" in notice.inner_text()
    assert "the cheapest first" in page.locator(".others").inner_text()
    check_that_all_can_read(page)
    for feature in case["report"]["check"]["to_ask"]:
        page.locator("#next-title", has_text=feature).wait_for()
        page.locator(".next input").fill(str(row[feature]))
        page.keyboard.press("Enter")
    page.get_by_text("done. The advice was to stop with").wait_for()
    assert "of it for the check" in page.locator(".budget").inner_text()
    other = advised(server, row)
    page.goto(f"http://127.0.0.1:{server.port}/#/case/{other['id']}")
    page.locator("#unavailable").click()
    page.get_by_text("This case does not count as checked").wait_for()


def test_the_page_of_the_promise_turns_from_good_to_alarm(browser, server, folder):
    for row in rows_of(12, 2):
        worked(server, row)
    page = opened(browser, server, "")
    page.locator("#monitor").click()
    page.get_by_text("Nothing speaks against the promise").wait_for()
    assert "12" in page.locator(".figures").inner_text()
    assert {"Class", "Subgroup"} <= set(page.locator(".parts th .who .hint").all_inner_texts())
    selector, X = askwise.load(folder), patients(400, 3, changed=True)[0]
    lost = selector.acquire(X, stop="calibrated").predict() != selector.predict(X)
    for row in X[lost][:12].to_dict("records"):
        worked(server, row)
    for look in ({"color_scheme": "light"}, {"color_scheme": "dark", "viewport": PHONE, "locale": "de-DE"}):
        page = opened(browser, server, "#/monitor", **look)
        said = page.locator("#verdict").inner_text()
        assert ("The promise is broken" in said) or ("Das Versprechen ist gebrochen" in said)
        assert "askwise recalibrate" in said
        check_that_all_can_read(page)
        assert page.evaluate("document.querySelector('main').scrollWidth <= innerWidth")
