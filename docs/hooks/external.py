"""Lists the links of the documents to other sites; with --check it asks whether they are there."""

import argparse
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_FOLDERS = ("deploy", "docs", "examples", "tests")
_LINK = re.compile(r"\]\((https?://[^)\s]+)\)")
_SECONDS = 20
_AT_ONCE = 4
_NAME = {"User-Agent": "Mozilla/5.0 (link check)"}


def pages(root: Path) -> list[Path]:
    """Return the documents of a repository."""
    below = (page for folder in _FOLDERS for page in sorted((root / folder).rglob("*.md")))
    return [*sorted(root.glob("*.md")), *below]


def links(root: Path) -> dict[str, list[str]]:
    """Return the links to other sites, and the documents that have each."""
    found: dict[str, list[str]] = {}
    for page in pages(root):
        for link in _LINK.findall(page.read_text(encoding="utf-8")):
            names = found.setdefault(link, [])
            name = str(page.relative_to(root))
            if name not in names:
                names.append(name)
    return dict(sorted(found.items()))


def problem(link: str) -> str | None:
    """Ask for a page; return what is wrong, or None."""
    request = urllib.request.Request(link, headers=_NAME)  # noqa: S310 - `links` takes HTTP only
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
            answer.read(1)
    except urllib.error.HTTPError as error:
        error.close()
        return f"{error.code} {error.reason}"
    except (OSError, ValueError) as error:
        return str(error)
    return None


def report(root: Path, *, check: bool) -> Iterator[tuple[str, bool]]:
    """Yield a line for each link, and whether something is wrong with it.

    Args:
        root: of the repository.
        check: whether each is asked for.
    """
    found = links(root)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        problems = pool.map(problem, found) if check else iter([None] * len(found))
        for (link, names), wrong in zip(found.items(), problems, strict=True):
            told = f": {wrong}" if wrong else ""
            yield f"{link} ({', '.join(names)}){told}", wrong is not None


def main(words: list[str], root: Path = _ROOT) -> int:
    """Print the links; return 1 if one leads nowhere."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="ask whether they are there")
    check = parser.parse_args(words).check
    failed = False
    for line, wrong in report(root, check=check):
        sys.stdout.write(f"{line}\n")
        failed |= wrong
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
