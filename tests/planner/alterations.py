"""Mistakes planted in the content of a plan (`forgery.content_of`), one each, by chance."""

import numpy as np


def any_contribution(content, chosen):
    return chosen.choice(np.argwhere(content["switch"]["entry_expected"] > 0).tolist())


def drop(content, chosen):
    switch, (entry, bank) = content["switch"], any_contribution(content, chosen)
    switch["entry_expected"][entry, bank] = 0
    switch["entry_slot"][entry, bank] = 0


def double(content, chosen):
    """A pass more for one source; the counts of slot, result and worker are raised to match."""
    switch, (entry, bank) = content["switch"], any_contribution(content, chosen)
    block, slot = switch["entry_block"][entry], switch["entry_slot"][entry, bank]
    raise_count(content, block, bank, slot)
    last = entry + int(np.argmax(switch["entry_last"][entry:]))
    switch["entry_last"][last] = False
    for name in [name for name in switch if name.startswith("entry")]:
        row = switch[name][last : last + 1].copy()
        switch[name] = np.insert(switch[name], last + 1, row, axis=0)
    switch["entry_hop"][last + 1] += 1
    switch["entry_last"][last + 1] = True
    only = np.arange(8) == bank
    expected = switch["entry_expected"][entry, bank]
    switch["entry_expected"][last + 1] = np.where(only, expected, 0)
    switch["entry_slot"][last + 1] = np.where(only, slot, 0)


def raise_count(content, block, bank, slot, by=1):
    switch = content["switch"]
    hit = (switch["entry_block"] == block) & (switch["entry_slot"][:, bank] == slot)
    hit &= switch["entry_expected"][:, bank] > 0
    switch["entry_expected"][hit, bank] += np.int16(by).astype(np.uint16)
    at = (switch["result_block"] == block) & (switch["result_bank"] == bank)
    at &= switch["result_slot"] == slot
    switch["result_expected"][at] += np.int16(by).astype(np.uint16)
    vertex = int(switch["result_vertex"][at][0])
    part = content["workers"][int(switch["result_worker"][at][0])]
    rows = slice(part["receive_indptr"][block - 1], part["receive_indptr"][block])
    row = rows.start + int(np.searchsorted(part["receive_vertex"][rows], vertex))
    part["receive_count"][row] = int(part["receive_count"][row]) + by


def exchangeable(switch):
    """Pairs of (entry, bank) of two sources and two destinations with the same count."""
    found = []
    additions = np.argwhere(switch["entry_expected"] > 0).tolist()
    for at, (entry, bank) in enumerate(additions):
        for other, same in additions[:at]:
            alike = all(
                (
                    bank == same,
                    switch["entry_block"][other] == switch["entry_block"][entry],
                    switch["entry_expected"][other, bank] == switch["entry_expected"][entry, bank],
                    switch["entry_slot"][other, bank] != switch["entry_slot"][entry, bank],
                    switch["entry_source"][other] != switch["entry_source"][entry],
                )
            )
            if alike:
                found.append((entry, other, bank))
    return found


def exchange(content, chosen):
    switch = content["switch"]
    one, other, bank = chosen.choice(exchangeable(switch))
    column = switch["entry_slot"][:, bank]
    column[[one, other]] = column[[other, one]]


def swap_owners(content, _):
    one = np.flatnonzero(content["assignment"] == 0)[0]
    other = np.flatnonzero(content["assignment"] == 1)[0]
    content["assignment"][[one, other]] = 1, 0


def change_packets(*, twice):
    """Let a worker send its first packet twice, or not at all."""

    def change(content, chosen):
        part = chosen.choice(content["workers"])
        for name in ("send_source", "send_destination", "send_row"):
            rows = part[name]
            part[name] = np.insert(rows, 0, rows[0]) if twice else rows[1:]
        part["send_row_indptr"] = np.arange(len(part["send_row"]) + 1)
        block = int(np.flatnonzero(np.diff(part["send_indptr"]))[0])
        part["send_indptr"][block + 1 :] += 1 if twice else -1

    return change


def share_slot(content, _):
    switch = content["switch"]
    bank, slot = switch["result_bank"], switch["result_slot"]
    same = (np.diff(switch["result_block"]) == 0) & (np.diff(bank) == 0)
    slot[np.argmax(same) + 1] = slot[np.argmax(same)]


def miscount(content, chosen):
    switch, (entry, bank) = content["switch"], any_contribution(content, chosen)
    block, slot = switch["entry_block"][entry], switch["entry_slot"][entry, bank]
    by = chosen.choice((-1, 1)) if switch["entry_expected"][entry, bank] > 1 else 1
    raise_count(content, block, bank, slot, by)


def change_number(where):
    """Add one to a number, or negate a truth value."""

    def change(content, chosen):
        arrays = content["switch"] if where == "switch" else chosen.choice(content["workers"])
        array = arrays[chosen.choice([name for name, array in arrays.items() if array.size])]
        at = np.unravel_index(chosen.randrange(array.size), array.shape)
        array[at] = not array[at] if array.dtype == bool else array[at] + array.dtype.type(1)

    return change


def predict(content, chosen):
    said = content["manifest"]["directions"]["forward"]["prediction"]
    said[chosen.choice(("boundary_edges", "contributions", "entries"))] += 1


# By what they do; each can be done again and again, elsewhere.
ALTERATIONS = {
    "a contribution dropped": drop,
    "a contribution doubled": double,
    "a contribution moved": exchange,
    "a count wrong everywhere": miscount,
    "a number of the switch changed": change_number("switch"),
    "a number of a worker changed": change_number("workers"),
    "owners swapped": swap_owners,
    "a packet left out": change_packets(twice=False),
    "a packet sent twice": change_packets(twice=True),
    "a slot shared": share_slot,
    "a prediction changed": predict,
}
