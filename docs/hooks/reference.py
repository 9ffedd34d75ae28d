"""Pages of the packages that programs import, from their docstrings."""

import ast
from pathlib import Path

FOLDER = "api"
_ONE = """
::: {module}.{name}.{name}
    options:
      show_root_heading: true
      show_root_full_path: false
      show_root_toc_entry: true
"""


def module_page(root: Path, module: str) -> str:
    """Return the page of a package, in Markdown for mkdocstrings.

    Args:
        root: of the repository.
        module: the package or module; what it offers is in its ``__all__``.
    """
    folder = root.joinpath(*module.split("."))
    # A file takes the place of the function that has its name and is in it.
    hidden = [name for name in offered(folder) if (folder / f"{name}.py").exists()]
    behind = "".join(_ONE.format(module=module, name=name) for name in hidden)
    return f"# {module}\n\n::: {module}\n{behind}"


def offered(folder: Path) -> list[str]:
    """Return the names in the ``__all__`` of a package or module; none without such a list."""
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return []
