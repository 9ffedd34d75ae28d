"""What MkDocs calls while it builds the site: it makes pages and changes links."""

import ast
from pathlib import Path, PurePosixPath
from typing import Any

import commands
import repository
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_REFERENCE = "api"
_ONE = """
::: {module}.{name}.{name}
    options:
      show_root_heading: true
      show_root_full_path: false
      show_root_toc_entry: true
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    made = {page: repository.text_of(path) for path, page in repository.BESIDE.items()}
    made[f"{commands.FOLDER}/index.md"] = commands.all_commands()
    for name in commands.command_names():
        made[f"{commands.FOLDER}/{name}.md"] = commands.command_page(name)
    for uri in _in_navigation(config.nav):
        if uri.startswith(f"{_REFERENCE}/"):
            made[uri] = _module_page(PurePosixPath(uri).stem)
    for uri, text in made.items():
        files.append(File.generated(config, uri, content=text))
    _add_files_of_the_repository(files, config)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:  # noqa: ANN401
    """Let links to files of the repository lead to their pages."""
    uri = page.file.src_uri
    return repository.with_links_of_the_site(markdown, uri, lambda _path: None)


def _add_files_of_the_repository(files: Files, config: MkDocsConfig) -> None:
    """Add a page for each file that a page has a link to."""
    waiting = [file for file in files if file.is_documentation_page()]
    while waiting:
        found: list[str] = []
        page = waiting.pop()
        repository.with_links_of_the_site(page.content_string, page.src_uri, found.append)
        for path in found:
            uri = repository.page_of(path)
            if uri is not None and files.get_file_from_path(uri) is None:
                new = File.generated(config, uri, content=repository.text_of(path))
                files.append(new)
                waiting.append(new)


def _in_navigation(nav: Any) -> list[str]:  # noqa: ANN401 - lists, records and texts of YAML
    if isinstance(nav, str):
        return [nav]
    if isinstance(nav, dict):
        nav = nav.values()
    return [uri for each in nav or () for uri in _in_navigation(each)]


def _module_page(module: str) -> str:
    """Return the page of a package that programs import, in Markdown for mkdocstrings."""
    folder = repository.ROOT.joinpath(*module.split("."))
    # A file hides the function of the same name that is in it.
    hidden = [name for name in _offered(folder) if (folder / f"{name}.py").exists()]
    return f"# {module}\n\n::: {module}\n" + "".join(
        _ONE.format(module=module, name=name) for name in hidden
    )


def _offered(folder: Path) -> list[str]:
    """Return the names in the ``__all__`` of a package or module; none without such a list."""
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return []
