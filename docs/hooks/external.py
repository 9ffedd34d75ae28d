"""Lists the links of the documents to other sites; with --check it also requests each."""

import re
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_FOLDERS = ("deploy", "docs", "examples", "tests")
_LINK = re.compile(r"\]\((https?://[^)\s]+)\)")
_SECONDS = 20
_AT_ONCE = 4
_NAME = {"User-Agent": "Mozilla/5.0 (link check)"}


def links(root: Path) -> dict[str, list[str]]:
    """Return the links to other sites, and the documents that have each."""
    found: dict[str, list[str]] = {}
    below = (page for folder in _FOLDERS for page in sorted((root / folder).rglob("*.md")))
    for page in (*sorted(root.glob("*.md")), *below):
        for link in dict.fromkeys(_LINK.findall(page.read_text(encoding="utf-8"))):
            found.setdefault(link, []).append(str(page.relative_to(root)))
    return dict(sorted(found.items()))


def problem(link: str) -> str:
    """Request a page; return ": " and what is wrong, or nothing."""
    request = urllib.request.Request(link, headers=_NAME)  # noqa: S310 - `links` takes HTTP only
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
            answer.read(1)
    except urllib.error.HTTPError as error:
        error.close()
        return f": {error.code} {error.reason}"
    except (OSError, ValueError) as error:
        return f": {error}"
    return ""


def main(words: list[str], root: Path = _ROOT) -> int:
    """Print the links; return 1 if `--check` is among the words and one leads nowhere."""
    found = links(root)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        problems = list(pool.map(problem, found)) if "--check" in words else [""] * len(found)
    for (link, names), wrong in zip(found.items(), problems, strict=True):
        sys.stdout.write(f"{link} ({', '.join(names)}){wrong}\n")
    return int(any(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
