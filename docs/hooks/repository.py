"""Links from the documents to files of the repository: in the site each such file has a page."""

import os
import re
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = "docs"
FILES = "files"
# Documents beside docs/ that readers look for, and the pages that they are.
BESIDE = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "examples/README.md": "examples.md",
}
_LANGUAGES = {".py": "python", ".p4": "c", ".sh": "bash", ".toml": "toml", ".json": "json"}
_MOST_BYTES = 1 << 18
# Nothing that starts a scheme, an anchor of the same page, or what is no link but code.
_LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")
_FENCE = re.compile(r"^(```.*?^```[ ]*$)", re.MULTILINE | re.DOTALL)


def place_of(uri: str) -> str:
    """Return where the source of a page is in the repository."""
    for path, page in BESIDE.items():
        if page == uri:
            return path
    if uri.startswith(f"{FILES}/"):
        return uri.removeprefix(f"{FILES}/").removesuffix(".md").removesuffix("/index")
    return f"{DOCS}/{uri}"


def page_of(path: str) -> str | None:
    """Return the page of the site that a file or folder of the repository is, or None."""
    if path in BESIDE:
        return BESIDE[path]
    if path.startswith(f"{DOCS}/"):
        return path.removeprefix(f"{DOCS}/")
    target = ROOT / path
    if target.is_dir():
        return f"{FILES}/{path}/index.md"
    return f"{FILES}/{path}.md" if target.is_file() else None


def with_links_of_the_site(text: str, uri: str, seen: Callable[[str], None]) -> str:
    """Return a document whose links to files of the repository lead to pages of the site.

    Args:
        text: the document.
        uri: of its page.
        seen: called with the path in the repository of each file that has no page of its own in
            docs/.
    """
    place = Path(place_of(uri))
    folder = place if (ROOT / place).is_dir() else place.parent
    here = Path(uri).parent

    def changed(found: re.Match[str]) -> str:
        path = os.path.normpath(folder / found[2])
        page = None if path.startswith(("..", "/")) else page_of(path)
        # What leads nowhere is left, and MkDocs refuses it.
        if page is None:
            return found[0]
        if not path.startswith(f"{DOCS}/"):
            seen(path)
        return found[1] + os.path.relpath(page, here) + found[3]

    parts = _FENCE.split(text)
    return "".join(
        part if number % 2 else _LINK.sub(changed, part) for number, part in enumerate(parts)
    )


def text_of(path: str) -> str:
    """Return the page for a file or folder of the repository, in Markdown."""
    target = ROOT / path
    if path in BESIDE:
        return target.read_text(encoding="utf-8")
    if target.is_dir():
        return _folder(path, target)
    if target.suffix == ".md":
        return _unsearched(target.read_text(encoding="utf-8"))
    text = target.read_bytes()[:_MOST_BYTES].decode("utf-8", errors="replace")
    language = _LANGUAGES.get(target.suffix, "text")
    return _unsearched(f"# {path}\n\n`````{language}\n{text}\n`````\n")


def _folder(path: str, target: Path) -> str:
    readme = target / "README.md"
    names = sorted(
        each.name + "/" * each.is_dir() for each in target.iterdir() if not _is_made(each)
    )
    rows = [f"- [{name}]({name.rstrip('/')})" for name in names if name != "README.md"]
    text = readme.read_text(encoding="utf-8") if readme.exists() else f"# {path}\n"
    return _unsearched(text + "\n" + "\n".join(rows) + "\n")


def _is_made(path: Path) -> bool:
    return path.name.startswith(".") or path.name == "__pycache__" or path.suffix == ".pyc"


def _unsearched(text: str) -> str:
    return f"---\nsearch:\n  exclude: true\n---\n{text}"
