"""The document that the page polls."""

import json
import threading

from switchgnn.live import board as module
from switchgnn.live.board import MOST_LOSSES, Board, JobOutcome
from tests.support.hand_clock import HandClock
from tests.support.waiting import wait_until


def read(board, page=""):
    return json.loads(board.read(page))


def test_it_has_the_newest_of_everything():
    clock = HandClock(100.0)
    board = Board("run karate", clock=clock)
    assert read(board)["network"] == 0
    board.step("installing")
    board.begin("a star", [True, False], ["s0"], "blue")
    clock.seconds += 2
    board.worker(0, {"blocks_total": 1.0})
    board.switch(0, {"switch_up": 1.0, "frames_total/aggregated": 3.0})
    clock.seconds += 1
    board.worker(0, {"blocks_total": 2.0})
    # Of another network, perhaps.
    board.worker(2, {"blocks_total": 9.0})
    seen = read(board)
    switch = {"switch_up": 1.0, "frames_total/aggregated": 3.0}
    assert seen.pop("workers") == [
        {"name": "w0", "served": True, "at": 3.0, "values": {"blocks_total": 2.0}},
        {"name": "w1", "served": False, "at": None, "values": {}},
    ]
    assert seen.pop("switches") == [{"name": "s0", "served": True, "at": 2.0, "values": switch}]
    assert seen == {
        **{"title": "run karate", "where": "a star", "job": "blue", "network": 1, "epochs": 0},
        **{"step": "installing", "seconds": 3.0, "losses": [], "finished": False},
        **{"outcome": None, "words": ""},
    }


def test_a_training_and_the_next_one():
    board = Board("train", epochs=3 * MOST_LOSSES)
    board.begin("a star", [True])
    for epoch in range(1, 2 * MOST_LOSSES + 1):
        board.epoch(epoch, 1 / epoch)
    board.epoch(2 * MOST_LOSSES + 1, float("nan"))
    board.finish()
    seen = read(board)
    assert seen["step"] == "training: 2001 of 3000 epochs done"
    # Bounded, and with the newest; JSON has no other word for what is no number.
    assert len(seen["losses"]) == MOST_LOSSES
    assert seen["losses"][-2:] == [[2 * MOST_LOSSES, 1 / (2 * MOST_LOSSES)], [2001, None]]
    assert seen["finished"]
    board.begin("one process")
    seen = read(board)
    assert (seen["network"], seen["workers"], seen["losses"]) == (2, [], [])
    assert not seen["finished"]


def test_the_first_end_counts_and_time_stops():
    clock = HandClock(5.0)
    board = Board("run", clock=clock)
    clock.seconds += 1
    board.end(JobOutcome.FAILED, "Worker 1 died.")
    clock.seconds += 1
    board.end(JobOutcome.DONE, "Done.")
    seen = read(board)
    assert (seen["outcome"], seen["words"]) == ("failed", "Worker 1 died.")
    assert seen["seconds"] == 1.0


def test_open_pages_are_waited_for(monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", 1000.0)
    clock = HandClock(5.0)
    board = Board("run", clock=clock)
    board.read("left")
    clock.seconds += 2000
    for page in ("one", "other"):
        board.read(page)
    board.end(JobOutcome.DONE, "Done.")
    waiting = threading.Thread(target=board.wait_for_pages, daemon=True)
    waiting.start()
    wait_until(lambda: len(board._changed._waiters) == 1, "the wait")
    board.read("one")
    # It has looked again, and waits on.
    wait_until(lambda: len(board._changed._waiters) == 1, "the wait")
    assert waiting.is_alive()
    board.read("other")
    waiting.join()
    # All of them know, so there is no wait.
    board.wait_for_pages()


def test_the_wait_for_pages_ends(monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", 0.01)
    board = Board("run", clock=HandClock(5.0))
    for page in range(1000):
        board.read(str(page))
    assert len(board._pages) == module._MOST_PAGES
    board.end(JobOutcome.DONE, "Done.")
    board.wait_for_pages()
