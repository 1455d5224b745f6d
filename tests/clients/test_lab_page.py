"""The lab's page in a real browser, against `millrace lab serve`: a store filled by the commands, one with ten thousand
runs, one with hostile text, none at all, a damaged one, a GPU that is made up, and the exported site.
MILLRACE_SCREENSHOTS=FOLDER also saves what it looks like."""

import functools
import http.server
import os
import pathlib
import re
import threading
import time

import pytest
from lab_server import GPU, HOSTILE, LabServer, fill_by_commands, fill_with, make_empty, run
from page_browser import PHONE, WATCH_CSP, browser, expect  # a fixture among them


REFUSED = [r"status of (40[0134]|503)"]
LOST = ["ERR_"]


class Pages:
    """Pages of one browser context; at the end nothing went to the console but what is allowed (a browser writes every
    refused request there), and nothing to another host."""

    def __init__(self, browser, url, allow=(), **options):
        self.url, self.allowed = url, allow
        self.context = browser.new_context(**{"viewport": {"width": 1360, "height": 860}, **options})
        self.errors = []

    def open(self, path="#/now"):
        page = self.context.new_page()
        page.add_init_script(WATCH_CSP)
        page.on("console", lambda m: m.type in ("error", "warning") and self.errors.append(m.text))
        page.on("pageerror", lambda e: self.errors.append(str(e)))
        page.on("dialog", lambda d: (self.errors.append("a dialog: " + d.message), d.dismiss()))
        page.on("request", lambda r: r.url.startswith(self.url) or self.errors.append("a request to " + r.url))
        page.goto(f"{self.url}/{path}")
        expect(page.locator("#view:not([aria-busy]) > .view")).to_be_visible()
        return page

    def close(self):
        self.context.close()
        assert [e for e in self.errors if not any(re.search(a, e) for a in self.allowed)] == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="module")
def real(millrace, folder):
    """(server, outcome): a store filled by the commands."""
    db = str(folder / "real.db")
    outcome = fill_by_commands(millrace, db)
    server = LabServer(millrace, db, gpu=GPU)
    yield server, outcome
    assert server.close() == 0


@pytest.fixture(scope="module")
def large(millrace, folder):
    """Ten thousand runs, and a hypothesis whose text is hostile."""
    db = str(folder / "large.db")
    make_empty(millrace, db)
    fill_with(db, 10_000)
    server = LabServer(millrace, db)
    yield server
    assert server.close() == 0


@pytest.fixture
def pages(browser):
    """pages(SERVER, ...): a Pages on it."""
    made = []

    def make(server, **options):
        made.append(Pages(browser, f"{server.url}/lab", **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def picture(page, name):
    if target := os.environ.get("MILLRACE_SCREENSHOTS"):
        pathlib.Path(target).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{target}/lab-{name}.png")


# --- what it shows ---


def test_now_shows_the_machine_live(real, pages):
    server, outcome = real
    page = pages(server).open()
    expect(page.locator("#live")).to_have_attribute("data-state", "live")
    expect(page.get_by_role("heading", name="This machine")).to_be_visible()
    expect(page.get_by_label("CPUs").locator("li").first).to_contain_text("%")
    expect(page.locator(".card", has_text="Read bandwidth").first).to_contain_text("GB/s")
    gpu = page.locator(".card", has_text="GPU 0: NVIDIA H200 <b>fake</b>")
    for text in ["97 %", "512 W", "limit 700 W", "61 °C", "memory 70 °C", "1,980 of 1,980 MHz", "Clock reasonsnone", "3 corrected, 0 not",
                 "1 after correctable", "generation 5 x16"]:
        expect(gpu).to_contain_text(text)
    expect(page.locator(".count", has_text=outcome)).to_contain_text("1")
    expect(page.locator(".events li").first).to_contain_text("run.ended")
    picture(page, "now-light")
    server.gpu.write_text("0.remap_pending 1\n0.reasons 64\n0.temperature 90\n" + GPU)
    alerts = page.get_by_label("Alerts")
    expect(alerts.locator("li").first).to_contain_text("a memory row waits to be remapped")
    expect(alerts).to_contain_text("hardware thermal")
    expect(page.locator("#live")).to_have_attribute("data-alert", "critical")
    picture(page, "alerts")
    server.gpu.write_text(GPU)


def test_a_hypothesis_and_its_verdict(real, pages):
    server, outcome = real
    page = pages(server).open("#/experiments")
    row = page.locator("tbody tr", has_text="Vectors find the top k").first
    expect(row).to_contain_text("time falls by at least 10 %")
    expect(row).to_contain_text(outcome)
    row.get_by_role("link", name="hyp:1").click()
    expect(page.locator(".title h2")).to_have_text("hyp:1")
    expect(page.locator(".title .badge").first).to_have_text(outcome)
    expect(page.locator(".verdict tbody tr")).to_have_count(2)  # cold and warm
    expect(page.locator(".verdict tbody tr").first).to_contain_text("%")
    expect(page.locator(".card", has_text="Learnings")).to_contain_text("partial sort by vectors")
    expect(page).to_have_title(re.compile("Hypothesis 1"))
    picture(page, "hypothesis")


def test_a_run_in_full(real, pages):
    page = pages(real[0]).open("#/run/1")
    expect(page.locator(".title h2")).to_have_text("run:1")
    expect(page.locator(".title")).to_contain_text("done")
    rows = page.get_by_role("region", name="Measurements of this run").locator("tbody tr")
    expect(rows).to_have_count(4)
    page.get_by_label("Compare with variant").select_option("std_nth_element")
    expect(rows.filter(has_text="std_nth_element").first).to_contain_text("1.000×")
    expect(page.locator(".figure").first.locator(".dot").first).to_be_visible()
    expect(page.locator("svg.plot[aria-label='Bandwidth of run:1'] .mark").first).to_be_visible()
    expect(page.get_by_role("region", name="Ceilings").locator("tbody tr").first).to_contain_text("GB/s")
    picture(page, "run")
    page.goto(f"{real[0].url}/lab/#/run/2")  # bench MODEL --ops
    step = page.locator(".card", has_text="A step by op: decode step of 1 at 0")
    expect(step).to_contain_text("matmul")
    expect(step).to_contain_text("%")


def test_the_graph_is_walked_by_keys(real, pages):
    page = pages(real[0]).open("#/graph/hyp:1")
    nodes = page.locator(".node")
    expect(nodes.first).to_be_visible()
    assert nodes.count() >= 4  # hypothesis, experiment, verdict, learning
    page.locator(".node.center").focus()
    seen = set()
    for key in ["ArrowLeft", "ArrowDown", "ArrowUp", "ArrowRight", "ArrowRight", "ArrowLeft"]:
        page.keyboard.press(key)
        seen.add(page.evaluate("document.activeElement.dataset.id"))
    assert len(seen) >= 2
    page.locator(".node[data-id='verdict:1']").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/graph/verdict:1"))
    expect(page.locator(".node.center")).to_have_attribute("data-id", "verdict:1")
    edges = page.get_by_role("region", name="Edges").locator("tbody tr")
    expect(edges.filter(has_text="verdict:1").filter(has_text="run:1").first).to_be_visible()
    picture(page, "graph")


def test_what_is_written_comes_by_itself(millrace, folder, pages):
    db = str(folder / "growing.db")
    make_empty(millrace, db)
    server = LabServer(millrace, db)
    page = pages(server, allow=LOST).open("#/log")
    expect(page.locator(".events li")).to_have_count(1)
    expect(page.locator("#live")).to_have_attribute("data-state", "live")
    time.sleep(1.2)  # the stream has seen where the log is
    run(millrace, "lab", "hypothesis", "another one", "--op", "rope", "--predict", "down", "--db", db)
    expect(page.locator(".events li")).to_have_count(2)
    expect(page.locator(".events li").first).to_contain_text("another one")
    assert server.close() == 0
    expect(page.locator("#live")).to_have_attribute("data-state", "lost")


# --- many runs ---


def test_ten_thousand_runs_are_paged(large, pages):
    page = pages(large).open("#/runs")
    table = page.get_by_role("region", name="Measurements")
    expect(table.locator("tbody tr")).to_have_count(50)
    expect(table.locator("tbody tr").first).to_contain_text("run:10000")
    start = time.monotonic()
    page.get_by_role("button", name="Older").first.click()
    # A run has four measurements, so the thirteenth is cut after two of them.
    expect(table.locator("tbody tr").first).to_contain_text("run:9988")
    assert time.monotonic() - start < 5
    page.get_by_role("button", name="Newer").first.click()
    expect(table.locator("tbody tr").first).to_contain_text("run:10000")
    page.get_by_label("Name").select_option("op7")
    expect(table.locator("tbody tr").first).to_contain_text("run:9987")
    page.get_by_label("Variant").fill("avx5*")
    expect(table.locator("tbody tr").first).to_contain_text("avx512")
    expect(table.locator("tbody tr", has_text="avx2")).to_have_count(0)
    page.get_by_label("Case").fill("nothing*")
    expect(page.locator(".empty", has_text="No measurement like that.")).to_be_visible()


def test_a_pinned_baseline_makes_ratios(large, pages):
    page = pages(large).open("#/runs/op7")
    runs = page.get_by_role("region", name="Runs")
    runs.locator("tbody tr").nth(1).get_by_role("button", name="Pin").click()
    table = page.get_by_role("region", name="Measurements")
    expect(table.locator("thead")).to_contain_text("÷ run:9967")
    expect(table.locator("tbody tr.pinned").first).to_contain_text("1.000×")
    expect(table.locator("tbody tr").first.locator("td").nth(7)).to_have_text(re.compile(r"^[01]\.\d{3}×$"))
    picture(page, "runs")
    page.reload()  # it stays
    expect(page.get_by_role("region", name="Measurements").locator("thead")).to_contain_text("÷ run:9967")
    page.get_by_role("button", name="Unpin").first.click()
    expect(page.get_by_text("Pin a run below")).to_be_visible()


def test_plots_of_many_runs(large, pages):
    page = pages(large).open("#/plots/op3")
    marks = page.locator("svg.plot").first.locator("a")
    expect(marks).to_have_count(300)
    expect(page.locator("svg.plot[aria-label='Roofline of op3'] .roof")).to_have_count(3)
    page.get_by_label("Variant").select_option("avx512")
    expect(page.locator("svg.plot").first).to_have_attribute("aria-label", re.compile("avx512"))
    picture(page, "plots")
    marks.last.click()
    expect(page.locator(".title h2")).to_have_text("run:9983")
    expect(page.locator(".trouble")).to_contain_text("digest does not match")  # made up, and it says so


def test_hypotheses_by_status(large, pages):
    page = pages(large).open("#/experiments")
    page.get_by_label("Status").select_option("refuted")
    expect(page).to_have_url(re.compile("#/experiments/refuted"))
    rows = page.get_by_role("region", name="Hypotheses").locator("tbody tr")
    expect(rows).to_have_count(25)
    expect(rows.filter(has_text="supported")).to_have_count(0)


# --- hostile and broken ---


def test_hostile_text_stays_text(large, pages):
    page = pages(large, allow=REFUSED).open("#/hyp/1")
    expect(page.locator(".text.large")).to_have_text(HOSTILE)
    assert page.locator("main img, main script").count() == 0
    page.goto(f"{large.url}/lab/#/graph/hyp:1")
    expect(page.locator(".node.center")).to_have_attribute("aria-label", re.compile("<img src=x"))
    assert page.locator("main img, main script").count() == 0
    for path in ["#/nothing", "#/run/abc", "#/hyp/999999", "#/graph/<script>", "#/%zz", "#/constructor"]:
        page.goto(f"{large.url}/lab/{path}")
        expect(page.locator("#view:not([aria-busy]) > .view")).to_be_visible()


def test_no_database_and_a_damaged_one(millrace, folder, pages):
    db = folder / "none" / "lab.db"
    db.parent.mkdir()
    server = LabServer(millrace, str(db))
    page = pages(server, allow=REFUSED + LOST).open()
    expect(page.get_by_role("heading", name="An empty lab")).to_be_visible()
    expect(page.get_by_role("heading", name="This machine")).to_be_visible()
    db.write_bytes(b"not a database" * 1000)
    page.goto(f"{server.url}/lab/#/runs")
    expect(page.locator(".trouble")).to_contain_text("damaged, or not a database of ours")
    db.unlink()
    make_empty(millrace, str(db))
    page.goto(f"{server.url}/lab/#/hyp/1")
    expect(page.locator(".text.large")).to_have_text(HOSTILE)
    assert server.close() == 0


def test_keys(millrace, folder, pages):
    db = str(folder / "keys.db")
    make_empty(millrace, db)
    server = LabServer(millrace, db, keys="admin ops:0123456789abcdef0123")
    opened = pages(server, allow=REFUSED + LOST)
    page = opened.context.new_page()
    page.goto(f"{server.url}/lab/#/hyp/1")
    page.get_by_role("textbox", name="Admin key").fill("0123456789abcdef0123")
    page.get_by_role("button", name="Use key").click()
    expect(page.locator(".text.large")).to_have_text(HOSTILE)
    expect(page.locator("#live")).to_have_attribute("data-state", "live")
    assert server.close() == 0


# --- everybody ---


def test_on_a_phone(real, pages):
    page = pages(real[0], **PHONE).open()
    for path in ["now", "experiments", "hyp/1", "runs", "run/1", "plots", "graph/hyp:1", "learnings", "log", "posts"]:
        page.goto(f"{real[0].url}/lab/#/{path}")
        expect(page.locator("#view:not([aria-busy]) > .view")).to_be_visible()
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, path  # tables scroll inside themselves
        if path in ("now", "run/1"):
            picture(page, f"phone-{path.replace('/', '-')}")


def test_in_the_dark(real, pages):
    page = pages(real[0], color_scheme="dark").open()
    expect(page.locator(".gauge").first).to_be_visible()
    page.wait_for_timeout(1500)
    picture(page, "now-dark")
    page.goto(f"{real[0].url}/lab/#/run/1")
    expect(page.locator(".figure").first).to_be_visible()
    picture(page, "run-dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 22, 23)"


def test_with_a_keyboard_and_a_reader(real, pages):
    page = pages(real[0]).open()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.get_by_role("navigation", name="Sections").get_by_role("link", name="Runs").press("Enter")
    expect(page.get_by_role("link", name="Runs", exact=True)).to_have_attribute("aria-current", "page")
    expect(page.locator("#view")).to_be_focused()
    # Whatever can be used has a name, and headings do not skip levels.
    for path in ["now", "experiments", "runs", "run/1", "plots", "graph/hyp:1", "log"]:
        page.goto(f"{real[0].url}/lab/#/{path}")
        expect(page.locator("#view:not([aria-busy]) > .view")).to_be_visible()
        nameless = page.evaluate("""[...document.querySelectorAll('main button, main a[href], main input, main select, svg[role=img]')]
            .filter((e) => !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).map((e) => e.outerHTML)""")
        assert nameless == [], path
        assert page.locator("h1").count() == 1


# --- the exported site ---


def test_the_exported_site(millrace, folder, real, browser):
    target = folder / "site"
    said = run(millrace, "lab", "export-site", str(target), "--db", str(folder / "real.db"))
    assert "with 2 runs" in said
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=target)
    handler.log_message = lambda *args: None
    plain = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=plain.serve_forever, args=(0.02,), daemon=True).start()
    opened = Pages(browser, f"http://127.0.0.1:{plain.server_address[1]}")
    page = opened.open("")
    expect(page.locator("#live-text")).to_contain_text("copy of 20")
    expect(page.locator(".count", has_text=real[1])).to_contain_text("1")
    for path, text in [("hyp/1", "Vectors find the top k"), ("run/1", "Roofline"), ("runs/topk", "run:1"), ("plots", "History"),
                       ("graph/hyp:1", "verdict:1"), ("learnings", "partial sort by vectors"), ("log", "hypothesis.added"), ("posts", "No posts yet.")]:
        page.goto(f"{opened.url}/#/{path}")
        expect(page.locator("#view:not([aria-busy]) > .view")).to_contain_text(text)
    opened.close()
    plain.shutdown()
