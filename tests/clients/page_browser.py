"""What the tests of the page share: a browser, pages that watch themselves, and a few steps. Debian's chromium
driven by PyPI's playwright; without either, whoever imports this is skipped."""

import re
import shutil

import pytest
from page_server import PageServer, answer

CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("the page is not tested: chromium is missing (apt-get install chromium)", allow_module_level=True)
sync_api = pytest.importorskip("playwright.sync_api", reason="the page is not tested: playwright is missing (PyPI)")
expect = sync_api.expect
expect.set_options(timeout=10_000)

PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
WATCH_CSP = """addEventListener('securitypolicyviolation',
    (e) => console.error('CSP: ' + e.violatedDirective + ' ' + e.blockedURI + ' ' + e.sourceFile + ' ' + e.sample));"""


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@pytest.fixture
def server():
    server = PageServer()
    yield server
    server.close()


class Opened:
    """Pages of one browser context; at the end nothing went to the console and nothing to another host."""

    def __init__(self, browser, server, **options):
        self.server = server
        self.context = browser.new_context(**options)
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.errors, self.allowed = [], []

    def open(self, wait=True):
        page = self.context.new_page()
        page.add_init_script(WATCH_CSP)
        page.on("console", lambda m: m.type in ("error", "warning") and self.errors.append(m.text))
        page.on("pageerror", lambda e: self.errors.append(str(e)))
        page.on("dialog", lambda d: (self.errors.append("a dialog: " + d.message), d.dismiss()))
        page.on("request", self.check_host)
        page.goto(self.server.url)
        if wait:
            expect(page.locator("#model-name")).to_have_text("SmolLM2-135M-Instruct-Q8_0")
        return page

    def check_host(self, request):
        if not request.url.startswith(self.server.url + "/"):
            self.errors.append("a request to " + request.url)

    def close(self):
        self.context.close()
        assert [e for e in self.errors if not any(re.search(a, e) for a in self.allowed)] == []


@pytest.fixture
def opened(browser, server):
    opened = Opened(browser, server, viewport={"width": 1280, "height": 800})
    yield opened
    opened.close()


@pytest.fixture
def page(opened):
    return opened.open()


@pytest.fixture(scope="module")
def one_page(browser):
    """For tests that leave no trace on it."""
    server = PageServer()
    opened = Opened(browser, server)
    yield opened.open()
    opened.close()
    server.close()


def send(page, text):
    page.fill("#message", text)
    page.press("#message", "Enter")


def ask(page, text="Hi"):
    """Sends, waits for the end, and returns the answer's turn."""
    send(page, text)
    last = page.locator(".turn.assistant").last
    expect(last).to_have_attribute("aria-busy", "false")
    return last


def show(page, server, markdown):
    """The Markdown as an answer shows it."""
    server.script = lambda body: answer(markdown)
    return ask(page).locator(".markdown")


def inner(locator):
    return locator.evaluate("(e) => e.innerHTML")
