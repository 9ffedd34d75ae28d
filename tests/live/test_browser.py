"""The page as Chromium shows it, for a real run and for invented metrics."""

import json
import os
import re
import shutil
import signal
import tempfile
from contextlib import contextmanager

import pytest

from switchgnn.live.board import EVERY, Board, JobOutcome
from tests.support.commands import started
from tests.support.hand_clock import HandClock
from tests.support.levels import browser_missing
from tests.support.markers import whole
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

from switchgnn.live.server import serve_page

# What is unknown.
DASH = "\N{EN DASH}"
pytestmark = [whole, pytest.mark.skipif(bool(browser_missing()), reason=browser_missing() or "")]


# Read in one go, so that all of it is of one document.
_SEEN = """
const all = (selector) => [...document.querySelectorAll(selector)];
const table = (id) => {
  const names = all(`#${id} th`).map((cell) => cell.textContent);
  return all(`#${id} tbody tr`).map((row) => Object.fromEntries(
    [...row.cells].map((cell, index) => [names[index], cell.textContent])));
};
const paths = (id) => Object.fromEntries(all(`#${id} path`).map((each) =>
  [each.dataset.name, [each.getAttribute("d").split("L").length, Number(each.dataset.last)]]));
return {
  title: document.getElementById("title").textContent,
  where: document.getElementById("where").textContent,
  step: document.getElementById("step").textContent,
  clock: document.getElementById("clock").textContent,
  outcome: document.body.dataset.outcome ?? null,
  lost: document.body.hasAttribute("data-lost"),
  workers: table("workers"),
  switches: table("switches"),
  jobs: table("jobs"),
  bold: all("#jobs td").filter((cell) => getComputedStyle(cell).fontWeight === "600")
    .map((cell) => cell.textContent),
  grew: all("#workers tbody tr").map((row) =>
    [...row.querySelectorAll(".grew")].map((cell) => cell.cellIndex)),
  blocks: paths("blocks"),
  training: paths("training"),
  foreign: all("script:not([src]), img, iframe, b, #injected").length,
  width: document.documentElement.scrollWidth,
};
"""


@contextmanager
def browser(folder):
    """Chromium with its driver and its files in a folder."""
    from selenium import webdriver  # noqa: PLC0415
    from selenium.webdriver.chrome.service import Service  # noqa: PLC0415

    options = webdriver.ChromeOptions()
    for word in (
        *("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"),
        *("disable-crash-reporter", "no-first-run", "disable-background-networking"),
        *("window-size=1280,800", "hide-scrollbars", f"user-data-dir={folder / 'browser'}"),
    ):
        options.add_argument(f"--{word}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.binary_location = shutil.which("chromium")
    # It makes a socket there, whose path must be short; what it leaves ends with the folder.
    with tempfile.TemporaryDirectory(prefix="browser-", dir="/tmp") as short:
        own = {"HOME": str(folder), "TMPDIR": short, "PATH": os.environ["PATH"]}
        service = Service(shutil.which("chromedriver"), env=own)
        driver = webdriver.Chrome(options=options, service=service)
        try:
            driver.set_page_load_timeout(seconds_here(30))
            driver.set_script_timeout(seconds_here(30))
            size = {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            scheme = {"name": "prefers-color-scheme", "value": "light"}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
            yield driver
        finally:
            driver.quit()


def look(driver):
    return driver.execute_script(_SEEN)


def complaints(driver):
    """The browser's errors, such as violations of the page's policy."""
    return [each["message"] for each in driver.get_log("browser") if each["level"] != "INFO"]


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as driver:
        yield driver


def test_a_run_to_its_end(driver, tmp_path):
    words = ("run", "--graph", "karate", "--workers", 3, "--rounds", 1000, "--json")
    fault = (
        *("--live", "--keep", "--target", "embedded", "--fabric", "loopback"),
        *("--faults", "w1.loss=0.05,seed=3"),
    )
    log = tmp_path / "stderr"
    with started(*words, *fault, log=log, scratch=tmp_path) as child:
        found = wait_until(lambda: re.search(r"^Live: (.*)$", log.read_text(), re.M), "the address")
        driver.get(found[1])

        def working():
            seen = look(driver)
            states = {each["activity"] for each in seen["workers"]}
            working = states and states <= {"exchanging", "waiting", "computing"}
            return working and seen["step"] == "exchanging" and seen

        seen = wait_until(working, "workers at work")
        assert seen["where"] == "transport switch, the embedded switch, loopback"
        assert seen["outcome"] is None
        seen = wait_until(lambda: (now := look(driver))["outcome"] and now, "the outcome")
        report = json.loads(child.stdout.readline())
        wait_until(lambda: "Ctrl-C ends it" in log.read_text(), "the end of the report")
        os.kill(child.pid, signal.SIGINT)
        assert child.wait(seconds_here(100)) == 0
    assert (seen["outcome"], seen["step"]) == ("done", "Over: Every sum equals the reference.")
    assert not seen["lost"]
    for worker in seen["workers"]:
        assert worker["activity"] == "finished"
        assert worker["rounds"] == "1,000"
    blocks = [int(worker["blocks"].replace(",", "")) for worker in seen["workers"]]
    # The chart ends with the table's numbers, and began earlier.
    assert [last for _, last in seen["blocks"].values()] == blocks
    assert all(points >= 2 for points, _ in seen["blocks"].values())
    recalls = sum(int(worker["recalls"].replace(",", "")) for worker in seen["workers"])
    assert recalls == report["repairs"].get("recalls", 0)
    lost = [int(worker["lost"].replace(",", "")) for worker in seen["workers"]]
    assert lost == [0, report["faults_injected"]["lost"], 0]
    (switch,) = seen["switches"]
    (job,) = seen["jobs"]
    assert (job["job"], job[""], job["session"]) == ("default", "this job", "1")
    assert (job["workers"], job["passes/s"]) == ("3", DASH)
    assert int(switch["aggregated"].replace(",", "")) > 0
    assert re.fullmatch(r"(about )?\d+ % of [\d,]+", switch["slots in use"])
    assert complaints(driver) == []


class Page:
    """A page whose metrics a test sets."""

    def __init__(self, driver, title, epochs=0):
        self.driver = driver
        self.clock = HandClock(50.0)
        self.board = Board(title, epochs, self.clock)

    def tell(self, *told):
        """Set the metrics of the first workers, half a second later."""
        self.clock.seconds += EVERY
        for worker, values in enumerate(told):
            self.board.worker(worker, values)

    def seen(self):
        """What the page shows, once it has the newest document."""
        self.clock.seconds += 0.1
        now = f"{self.clock.seconds - 50.0:.1f} s"
        return wait_until(lambda: (seen := look(self.driver))["clock"] == now and seen, "the page")


@pytest.fixture
def page(driver, request):
    made = Page(driver, *getattr(request, "param", ("run karate over 4 workers",)))
    with serve_page(made.board, 0) as address:
        driver.get(address)
        yield made
        made.board.end(JobOutcome.DONE, "The test is over.")
    wait_until(lambda: look(driver)["outcome"], "the outcome")
    assert complaints(driver) == []
    driver.get("about:blank")


def values(blocks, passed, *, waited=0.0, recalls=0, lost=0):
    return {
        "rounds_total": 1.0,
        "blocks_total": float(blocks),
        "exchanging": 1.0,
        "barrier_seconds_total": waited,
        "link_bytes_total/up": float(passed),
        "link_bytes_total/down": 2.0 * passed,
        "recalls_total": float(recalls),
        **dict.fromkeys(("fetches_total", "features_resent_total"), 0.0),
        "injected_faults_total/up/lost": float(lost),
        "injected_faults_total/down/lost": 0.0,
    }


def test_rates_of_workers(page):
    page.board.begin("a star", [True] * 4)
    page.tell(values(2, 1_000), values(2, 1_000), values(2, 90_000), {"link_bytes_total/up": 1.0})
    assert [each["up/s"] for each in page.seen()["workers"]] == [DASH] * 4
    page.clock.seconds += EVERY - 0.1
    # The third process has been restarted, and the fourth exchanges without the switch.
    page.tell(
        *(values(5, 101_000, waited=0.8), values(4, 2_000, waited=0.1, recalls=7, lost=30)),
        *(values(1, 10), {"link_bytes_total/up": 501.0}),
    )
    one, other, restarted, direct = page.seen()["workers"]
    assert (one["activity"], one["waited"]) == ("waiting", "80 %")
    assert (one["up"], one["up/s"], one["down/s"]) == ("101 kB", "100 kB", "200 kB")
    assert (other["activity"], other["waited"], other["up/s"]) == ("exchanging", "10 %", "1.0 kB")
    assert (other["recalls"], other["fetches"], other["lost"]) == ("7", "0", "30")
    assert (restarted["blocks"], restarted["up"], restarted["up/s"]) == ("1", "10 B", "0 B")
    assert (direct["activity"], direct["up/s"], direct["blocks"]) == ("exchanging", "500 B", DASH)
    seen = page.seen()
    # Nothing has been told since, so all of it stands.
    assert seen["workers"][0]["up/s"] == "100 kB"
    # Recalls and lost frames.
    assert seen["grew"] == [[], [9, 12], [], []]
    assert {name: last for name, (_, last) in seen["blocks"].items()} == {"w0": 5, "w1": 4, "w2": 1}


def test_silence(page):
    page.board.begin("a star", [True, True, False], ["s0", "s1", "s2"])
    page.tell(values(2, 1_000))
    page.board.switch(0, {"switch_up": 1.0, "frames_total/recalled": 1_234.0})
    page.board.switch(1, {"switch_up": 0.0})
    seen = page.seen()
    assert [each["activity"] for each in seen["workers"]] == [
        *("exchanging", "no report yet", "no metrics")
    ]
    assert [each[""] for each in seen["switches"]] == ["answers", "no answer", "not asked yet"]
    assert [each["recalled"] for each in seen["switches"]] == ["1,234", DASH, DASH]
    page.clock.seconds += 3
    worker = page.seen()["workers"][0]
    # The last numbers stay; nothing is known of what it does.
    assert (worker["activity"], worker["blocks"], worker["up/s"]) == ("silent", "2", DASH)


def job(name, session, passes, frames=None):
    return {
        f"session/{name}": float(session),
        f"plan_workers/{name}": 4.0,
        f"job_slots/{name}": 2_048.0,
        f"job_passes_total/{name}": float(passes),
        **{
            f"job_frames_total/{name}/{outcome}": count for outcome, count in (frames or {}).items()
        },
    }


def test_jobs_come_and_go(page):
    def tell(switch, passes, *jobs):
        told = {"switch_up": 1.0, "passes_total": float(passes)}
        page.board.switch(switch, told | {name: of for each in jobs for name, of in each.items()})

    page.board.begin("two leaves", [], ["s0", "s1"], "blue")
    page.clock.seconds += EVERY
    tell(0, 9_000, job("blue", 3, 1_000, {"aggregated": 500}), job("a-b.c", 2, 4_000))
    first = page.seen()["jobs"]
    assert [(each["job"], each["passes/s"], each["share"], each["frames/s"]) for each in first] == [
        *(("blue", DASH, DASH, DASH), ("a-b.c", DASH, DASH, DASH))
    ]
    page.clock.seconds += EVERY - 0.1
    # An outcome that is new; and a third job, on the other switch, too.
    tell(
        *(0, 11_000, job("blue", 3, 2_500, {"aggregated": 900, "stale": 50})),
        *(job("a-b.c", 2, 4_500), job("late", 4, 7_000, {"stale": 6})),
    )
    tell(1, 0, job("late", 4, 0))
    seen = page.seen()
    fixed = {"workers": "4", "slots per bank": "2,048"}
    new = {"job": "late", "": "", "session": "4", **fixed}
    new |= dict.fromkeys(("passes/s", "share", "frames/s"), DASH)
    assert seen["jobs"] == [
        {
            **{"job": "blue", "": "this job", "switch": "s0", "session": "3", **fixed},
            **{"passes/s": "3,000", "share": "75 %", "frames/s": "900"},
        },
        {
            **{"job": "a-b.c", "": "", "switch": "s0", "session": "2", **fixed},
            **{"passes/s": "1,000", "share": "25 %", "frames/s": "0"},
        },
        {**new, "switch": "s0"},
        {**new, "switch": "s1"},
    ]
    assert seen["bold"] == ["blue", "this job"]
    page.clock.seconds += EVERY - 0.1
    # One is removed; one is installed again, as another number with an earlier job's counters.
    tell(0, 11_100, job("a-b.c", 5, 9_000), job("late", 4, 7_100))
    page.board.switch(1, {"switch_up": 0.0})
    rates = {each["job"]: (each["passes/s"], each["share"]) for each in page.seen()["jobs"]}
    assert rates == {"a-b.c": (DASH, DASH), "late": ("200", "100 %")}
    page.board.finish()
    rates = {each["job"]: each["passes/s"] for each in page.seen()["jobs"]}
    assert rates == {"a-b.c": DASH, "late": DASH}


EVIL = "<img id=injected src=x onerror=alert(1)><b>bold</b>"


@pytest.mark.parametrize("page", [(EVIL,)], indirect=True, ids=["evil"])
def test_names_are_text(page):
    page.board.begin(EVIL, [True], [EVIL], EVIL)
    page.board.step(EVIL)
    page.board.switch(0, {f"frames_total/{EVIL}": 1.0, **job(EVIL, 1, 1)})
    page.tell({EVIL: 1.0, "blocks_total": 1.0})
    seen = page.seen()
    assert seen["title"] == seen["where"] == seen["step"] == seen["switches"][0]["switch"] == EVIL
    assert [(each["job"], each[""], each["switch"]) for each in seen["jobs"]] == [
        (EVIL, "this job", EVIL)
    ]
    assert seen["foreign"] == 0


@pytest.mark.parametrize("page", [("train karate over 4 workers", 10)], indirect=True)
def test_a_training_and_the_next(page):
    page.board.begin("a star", [True] * 2)
    for epoch, loss in ((1, 2.0), (2, 1.0), (3, float("nan"))):
        page.board.epoch(epoch, loss)
    page.tell(values(1, 1), values(1, 1))
    seen = page.seen()
    assert seen["step"] == "training: 3 of 10 epochs done"
    # A point for each epoch; one that is no number has none.
    assert seen["training"] == {"loss": [2, 1]}
    assert set(seen["blocks"]) == {"w0", "w1"}
    page.board.begin("one process")
    seen = page.seen()
    assert (seen["where"], seen["workers"], seen["training"]) == ("one process", [], {})
    assert seen["blocks"] == {}
