# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The page as Chromium draws it, for invented networks."""

import itertools
import os
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import replace

import pytest

from switchgnn.controller.counters import SlotsInUse
from switchgnn.live.gather import EVERY, LinkSeen
from switchgnn.live.snapshot import Ending, Epoch, JobOutcome, Picture, SwitchPlace, WorkerPlace
from tests.live.pictures import LEAF_SPINE, STAR, reading, values
from tests.support.hand_clock import HandClock
from tests.support.levels import browser_missing
from tests.support.markers import whole
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

from switchgnn.live.gather import Gathering
from switchgnn.live.server import Feed, Show, serve_page

# What nobody has told.
DASH = "\N{EN DASH}"
pytestmark = [whole, pytest.mark.skipif(bool(browser_missing()), reason=browser_missing() or "")]


# Read in one go, so that all of it is of one snapshot.
_DRAWN = """
const all = (selector) => [...document.querySelectorAll(selector)];
const cells = (row) => [...row.cells].map((cell) => cell.textContent);
return {
  number: Number(document.body.dataset.number ?? 0),
  ended: document.body.dataset.ended ?? null,
  lost: "lost" in document.body.dataset,
  title: document.getElementById("title").textContent,
  step: document.getElementById("step").textContent,
  links: all("#network .link[data-link]").map((each) => ({
    up: each.dataset.up, down: each.dataset.down, losing: each.classList.contains("losing"),
    lines: each.querySelectorAll("line").length,
    moving: each.querySelectorAll("line.moving").length,
    says: each.querySelector("title").textContent,
    colours: [...each.querySelectorAll("line")].map((line) => getComputedStyle(line).stroke),
  })),
  cables: all("#network .link[data-cable]").map((each) => ({
    name: each.dataset.cable, up: each.dataset.up, down: each.dataset.down,
    says: each.querySelector("title").textContent,
  })),
  switches: all("#network .switch").map((each) => each.textContent),
  workers: all("#network .worker").map((each) => ({
    state: each.dataset.state, repairing: each.classList.contains("repairing"),
    marked: each.classList.contains(each.dataset.state), text: each.textContent,
    colour: getComputedStyle(each.querySelector(".body")).stroke,
  })),
  legend: Object.fromEntries(
    all("#legend .key").map((each) => [each.classList[1], getComputedStyle(each).color])
  ),
  rows: all("#workers tbody tr").map(cells),
  red: all("#workers tbody tr").map((each) =>
    [...each.querySelectorAll("td.repair")].map((cell) => cell.cellIndex)
  ),
  rowClasses: all("#workers tbody tr").map((each) => each.className),
  switchRows: all("#switches tbody tr").map(cells),
  blocks: all("#blocks path").map((each) => Number(each.dataset.last)),
  repairs: Object.fromEntries(
    all("#repairs path").map((each) => [each.dataset.name, Number(each.dataset.last)])
  ),
  lostFrames: document.getElementById("lost-box").hidden
    ? null : all("#lost path").map((each) => Number(each.dataset.last)),
  states: all("#network .worker text.state").map((each) => each.getBoundingClientRect())
    .map((each) => [each.left, each.right]),
  training: all("#training path").map((each) => each.getAttribute("d").split("L").length),
  trainingHidden: document.getElementById("training-box").hidden,
  foreign: all("script:not([src]), img, iframe, b, #injected").length,
  size: [document.documentElement.scrollWidth, document.documentElement.scrollHeight],
};
"""


@contextmanager
def browser(folder, *, dark=False):
    """Chromium with its driver and its files in a folder."""
    # It makes a socket there, whose path must be short; what it leaves ends with the folder.
    with tempfile.TemporaryDirectory(prefix="browser-", dir="/tmp") as short:
        yield from _driver(folder, short, dark=dark)


def _driver(folder, temporary, *, dark):
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
    own = {"HOME": str(folder), "TMPDIR": temporary, "PATH": os.environ["PATH"]}
    service = Service(shutil.which("chromedriver"), env=own)
    driver = webdriver.Chrome(options=options, service=service)
    try:
        driver.set_page_load_timeout(seconds_here(30))
        driver.set_script_timeout(seconds_here(30))
        size = {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        yield driver
    finally:
        driver.quit()


def drawn(driver):
    """The page as drawn now."""
    return driver.execute_script(_DRAWN)


def complaints(driver):
    """The browser's errors, such as violations of the page's policy."""
    return [each["message"] for each in driver.get_log("browser") if each["level"] != "INFO"]


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as driver:
        yield driver


class Page:
    """A page fed by a test."""

    def __init__(self, driver, title="run karate over 4 workers", epochs=0):
        self.driver = driver
        self.clock = HandClock(50.0)
        self.gathering = Gathering(title, epochs, self.clock)
        self.feed = Feed()
        self.show = Show(self.gathering, self.feed)

    def tell(self, *told):
        """Reports of all workers, half a second later."""
        self.clock.seconds += EVERY
        for worker, said in enumerate(told):
            self.gathering.worker(worker, said)

    def drawn(self, *, last=False):
        """The page as drawn now."""
        self.show.publish(last=last)
        number = self.gathering._number
        return wait_until(
            lambda: (seen := drawn(self.driver))["number"] == number and seen, "the snapshot"
        )


@pytest.fixture
def page(driver, request):
    made = Page(driver, *getattr(request, "param", ()))
    made.show.publish()
    with serve_page(made.feed, 0) as address:
        driver.get(address)
        yield made
        made.show.publish(last=True)
        assert complaints(driver) == []
        driver.get("about:blank")


def test_a_star_with_a_fault(page):
    page.gathering.begin(STAR)
    page.gathering.switches([reading(10, (10, 0, 0))], [SlotsInUse(0, 8, 16)])
    page.tell(*[values(2, up=18_800, down=18_800, lost=0.0)] * 4)
    page.drawn()
    page.tell(
        values(5, up=188_000, down=94_000, waited=0.4, lost=0.0),
        values(4, up=94_000, down=47_000, waited=0.02, recalls=7, lost=30.0),
        values(5, up=188_000, down=94_000, waited=0.3, lost=0.0),
        values(5, up=188_000, down=94_000, waited=0.49, lost=0.0),
    )
    page.gathering.switches([reading(90, (10, 60, 20), 5)], [SlotsInUse(4, 8, 16)])
    page.gathering.links([LinkSeen(waiting_up=832, waiting_down=1664)] * 4, [])
    seen = page.drawn()
    assert [worker["state"] for worker in seen["workers"]] == [
        *("waiting", "exchanging", "waiting", "waiting")
    ]
    assert all(worker["marked"] for worker in seen["workers"])
    assert [worker["repairing"] for worker in seen["workers"]] == [False, True, False, False]
    # Each has the colour that the legend says.
    for worker in seen["workers"]:
        assert worker["colour"] == seen["legend"][worker["state"]]
    assert len(set(seen["legend"].values())) == len(seen["legend"]) == 5
    assert "w1exchanging, repairs" in seen["workers"][1]["text"]
    assert "↑ 94.0 kB · 150 kB/s" in seen["workers"][1]["text"]
    assert "queue ↑ 832 B ↓ 1.7 kB" in seen["workers"][1]["text"]
    assert [link["losing"] for link in seen["links"]] == [False, True, False, False]
    red = seen["legend"]["repairing"]
    assert [link["colours"].count(red) for link in seen["links"]] == [0, 2, 0, 0]
    assert [link["up"] for link in seen["links"]] == ["188000", "94000", "188000", "188000"]
    assert [link["down"] for link in seen["links"]] == ["94000", "47000", "94000", "94000"]
    assert [(link["lines"], link["moving"]) for link in seen["links"]] == [(2, 2)] * 4
    assert seen["links"][1]["says"].endswith("47,000 down, 30 frames lost")
    assert seen["rows"][1] == [
        *("w1", "exchanging", "4 %", "4", "94.0 kB", "47.0 kB", "832 B", "1.7 kB", "7"),
        *("0", "0", "30"),
    ]
    assert seen["rowClasses"] == ["waiting", "exchanging repairing", "waiting", "waiting"]
    # Recalls and lost frames; of the others there are none.
    assert seen["red"] == [[], [8, 11], [], []]
    assert seen["switchRows"] == [
        ["switch", "about 50 % of 16", "1.3, at most 2", "90", "90", "5", "0", "0"]
    ]
    assert "50 % of slots in use" in seen["switches"][0]
    assert seen["blocks"] == [5, 4, 5, 5]
    assert seen["repairs"] == {"recalls": 7, "fetches": 0}
    assert seen["lostFrames"] == [30]
    assert seen["size"] == [1280, 800]


def test_what_bmv2_does_not_tell(page):
    page.gathering.begin(LEAF_SPINE)
    page.gathering.switches([reading(10)] * 3, [None] * 3)
    page.gathering.links(
        [LinkSeen(waiting_down=0)] * 4, [LinkSeen(1_000, 2_000, 0, None, None), LinkSeen()]
    )
    page.tell(*[values(1, up=100, down=100)] * 4)
    seen = page.drawn()
    assert len(seen["links"]) == 4
    assert [cable["name"] for cable in seen["cables"]] == ["l0s0", "l1s0"]
    assert (seen["cables"][0]["up"], seen["cables"][0]["down"]) == ("1000", "2000")
    assert seen["cables"][1]["up"] == ""
    assert "nobody counts" in seen["cables"][1]["says"]
    assert [row[1] for row in seen["switchRows"]] == ["not told by BMv2"] * 3
    assert all("slots not told" in text for text in seen["switches"])
    assert [row[6:8] for row in seen["rows"]] == [[DASH, "0 B"]] * 4
    # No worker has said what its link has lost.
    assert {row[-1] for row in seen["rows"]} == {DASH}


def test_a_worker_that_tells_nothing(page):
    untold = replace(STAR.workers[1], told=False)
    page.gathering.begin(replace(STAR, workers=(STAR.workers[0], untold, *STAR.workers[2:])))
    page.gathering.no_answer(2)
    seen = page.drawn()
    assert [worker["state"] for worker in seen["workers"]] == [
        *("starting", "untold", "silent", "starting")
    ]
    assert [row[1] for row in seen["rows"]] == ["starting", "not told", "silent", "starting"]
    assert "w1not told" in seen["workers"][1]["text"]
    assert seen["rows"][1][3:] == [DASH] * 9
    assert len(seen["blocks"]) == 3


def test_a_switch_that_is_gone(page):
    page.gathering.begin(STAR)
    seen = page.drawn()
    assert "not asked yet" in seen["switches"][0]
    page.gathering.switches([None], [None])
    seen = page.drawn()
    assert "does not answer" in seen["switches"][0]
    assert set(seen["switchRows"][0][1:]) == {DASH}


EVIL = "<img id=injected src=x onerror=alert(1)><b>bold</b>"


@pytest.mark.parametrize("page", [(EVIL,)], indirect=True, ids=["evil"])
def test_names_are_text(page):
    places = (WorkerPlace(0, 1),), (SwitchPlace(EVIL, 0),)
    page.gathering.begin(Picture(EVIL, EVIL, EVIL, *places, ()))
    page.gathering.switches([reading()], [None])
    page.gathering.step(EVIL)
    seen = page.drawn()
    assert seen["title"] == seen["step"] == seen["switchRows"][0][0] == EVIL
    assert seen["foreign"] == 0
    page.gathering.end(Ending(JobOutcome.FAILED, EVIL))
    assert page.drawn(last=True)["foreign"] == 0


@pytest.mark.parametrize("page", [("train karate over 4 workers", 10)], indirect=True)
def test_a_training(page):
    page.gathering.begin(STAR)
    page.gathering.step("installing")
    for epoch in (1, 2, 3):
        page.gathering.epoch(Epoch(epoch, 1 / epoch, None))
    seen = page.drawn()
    assert seen["step"] == "training: 3 of 10 epochs done"
    assert not seen["trainingHidden"]
    # A point for each epoch.
    assert seen["training"] == [3]
    assert seen["size"] == [1280, 800]


def test_the_page_stays_as_it_was(page):
    page.gathering.begin(STAR)
    page.tell(*[values(2, up=188, down=188)] * 4)
    page.gathering.finish()
    page.gathering.end(Ending(JobOutcome.DONE, "Every sum equals the reference."))
    seen = page.drawn(last=True)
    assert seen["ended"] == "done"
    assert seen["step"] == "Over: Every sum equals the reference."
    assert [worker["state"] for worker in seen["workers"]] == ["finished"] * 4
    assert not seen["lost"]


def test_a_run_that_is_killed_is_lost(driver):
    page = Page(driver)
    page.gathering.begin(STAR)
    page.show.publish()
    with serve_page(page.feed, 0) as address:
        driver.get(address)
        page.drawn()
    wait_until(lambda: drawn(driver)["lost"], "a page that notices")
    seen = drawn(driver)
    assert seen["ended"] is None
    assert seen["step"] == "The run does not answer any more."
    assert len(seen["links"]) == 4
    driver.get("about:blank")
    driver.get_log("browser")


def test_late_sums_are_no_lost_frames(page):
    """Without faults no link counts losses."""
    page.gathering.begin(STAR)
    page.tell(*[values(5, up=188, down=188, recalls=3_260)] * 4)
    seen = page.drawn()
    assert seen["repairs"] == {"recalls": 4 * 3_260, "fetches": 0}
    assert seen["lostFrames"] is None
    assert "loss" not in page.driver.find_element("tag name", "body").text.lower()


@pytest.mark.parametrize("workers", [4, 9, 64])
def test_any_number_of_workers_is_legible(page, workers):
    places = tuple(WorkerPlace(0, port) for port in range(1, workers + 1))
    page.gathering.begin(replace(STAR, workers=places))
    page.tell(*[values(1, up=100, down=100)] * workers)
    seen = page.drawn()
    assert {worker["state"] for worker in seen["workers"]} == {"exchanging"}
    spans = seen["states"]
    assert len(spans) in ((workers,) if workers <= 4 else (workers, 0))
    for (_, right), (left, _) in itertools.pairwise(spans):
        assert right < left
    assert seen["size"] == [1280, 800]
