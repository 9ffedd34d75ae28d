# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A headless browser, and the page as it draws it."""

import os
import shutil
import tempfile
from contextlib import contextmanager

from tests.support.speed import seconds_here

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
