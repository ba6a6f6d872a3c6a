"""A headless browser for tests: Debian's Chromium through Playwright.

Without it the tests are skipped; where `STRATAL_BROWSER=required` (as `.ci/run` sets it) they fail instead.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn

from stratal.study.web.content import media_address, read_display
from stratal.study.web.server import PageAddress, ServerLimits, application, configuration, tokens

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu"]


def chromium():
    """Return the path of the browser; skip or fail without one."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        refuse = pytest.fail if os.environ.get("STRATAL_BROWSER") == "required" else pytest.skip
        refuse("Chromium is not installed (apt-get install chromium)")
    return path


@contextmanager
def browser_open():
    """A running browser."""
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def served(study, limits=None):
    """A study's page on a free port; gives annotator → link."""
    kept = limits or ServerLimits(rate=1e6, burst=10**6)
    place = PageAddress(port=0)
    listening = place.listen()
    port = listening.getsockname()[1]
    app = application(study, read_display(study, media_address), place.host_names(port), kept)
    server = uvicorn.Server(configuration(app, kept))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield {name: f"{place.url(port)}/a/{token}/" for name, token in tokens(study).items()}
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
