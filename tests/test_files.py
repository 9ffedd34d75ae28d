"""Files: only regular ones are read, folders are private, caches trusted, full disks explained."""

import errno
import gzip
import os
import pwd
import signal
import stat
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

import pytest

from switchgnn.base import files
from switchgnn.base.native import CacheError, cache_folder, compiled_once
from tests.support.markers import needs_root
from tests.support.processes import run_program
from tests.support.speed import seconds_here


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("made", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_is_refused(tmp_path, made):
    made(tmp_path / "strange")
    before = open_files()
    with pytest.raises(OSError, match="not a regular file"):
        files.open_regular(tmp_path / "strange")
    assert open_files() == before


def test_a_pipe_that_takes_the_place_of_a_file_is_not_waited_for(tmp_path):
    """Checking the name before opening it would be a race."""
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")

    class Exchanged(type(Path())):
        def stat(self, **options):
            found = super().stat(**options)
            (tmp_path / "pipe").replace(tmp_path / "file")
            return found

    place = Exchanged(tmp_path / "file")
    # What waits for the pipe otherwise would wait without end.
    with (tmp_path / "pipe").open("r+b", buffering=0), files.open_regular(place) as file:
        assert stat.S_ISREG(os.fstat(file.fileno()).st_mode)


def test_texts_and_bytes(tmp_path):
    (tmp_path / "file").write_bytes(b"\xef\xbb\xbfone\r\ntwo\n")
    assert files.read_regular(tmp_path / "file")[3:] == b"one\r\ntwo\n"
    assert files.read_regular_text(tmp_path / "file", "utf-8-sig") == "one\ntwo\n"
    with pytest.raises(UnicodeDecodeError):
        files.read_regular_text(tmp_path / "file", "ascii")


def test_it_is_for_its_owner_alone_and_gone_afterwards():
    with files.private_folder("test-") as folder:
        assert stat.S_IMODE(folder.stat().st_mode) & 0o777 == 0o700
        assert folder.name.startswith("test-")
    assert not folder.exists()


MAKER = """
import os, sys, time
from switchgnn.base.files import private_folder
with private_folder("switchgnn-", sys.argv[1]) as folder:
    (folder / "inner").mkdir()
    if sys.argv[2] == "forks" and os.fork():
        os._exit(0)
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.mark.whole
@pytest.mark.parametrize("how", ["alone", "forks"])
def test_that_of_a_killed_process_is_removed_by_the_next(tmp_path, how):
    """A folder stays until all forks of its owner have ended; other folders always stay."""
    kept = [tmp_path / f"switchgnn-{each}" for each in ("logs-1", "cache", "link")]
    for each in kept[:2]:
        each.mkdir(mode=0o700)
    kept[2].symlink_to(tmp_path)
    command = [sys.executable, "-c", MAKER, str(tmp_path), how]
    with subprocess.Popen(
        command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as maker:
        left = Path(maker.stdout.readline().strip())
        if how == "forks":
            maker.wait(seconds_here())
        with files.private_folder("switchgnn-", str(tmp_path)):
            assert (left / "inner").exists()
        os.killpg(maker.pid, signal.SIGKILL)
        maker.stdout.read()
    with files.private_folder("switchgnn-", str(tmp_path)) as folder:
        assert sorted(tmp_path.iterdir()) == sorted([*kept, folder])


def test_one_that_cannot_be_made(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(files.WriteError, match="set TMPDIR to"), files.private_folder("test-"):
        pytest.fail("it was made")


def test_a_link_in_the_path_is_not_followed_twice(tmp_path, monkeypatch):
    (tmp_path / "own").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "own")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "link"))
    with files.private_folder("test-") as folder:
        assert folder.parent == (tmp_path / "own").resolve()


def error_of(number):
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (error_of(errno.ENOSPC), "No space left on device"),
        (error_of(errno.EDQUOT), "Disk quota exceeded"),
        (OSError("9 requested and 3 written"), "the disk took only a part of it (9 requested"),
    ],
)
def test_what_to_do_about_a_full_disk_is_said(error, reason, monkeypatch, tmp_path):
    """Python itself uses another folder for temporary files if that of TMPDIR is full."""
    monkeypatch.setattr(tempfile, "tempdir", "/another")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    said = files.why_not_written(error, tmp_path / "folder" / "file")
    assert said.startswith(reason)
    assert said.endswith("; make room there, or set TMPDIR to a folder on another disk")
    assert files.why_not_written(error, Path("/home/me/plan")).endswith("or choose another folder")


def test_other_errors_are_told_as_they_are():
    assert files.why_not_written(error_of(errno.EACCES), Path("/plan")) == "Permission denied"
    sentence = r"^Cannot write /plan: Read-only file system\.$"
    with pytest.raises(files.WriteError, match=sentence), files.writing(Path("/plan")):
        raise error_of(errno.EROFS)


def compiled_in(folder):
    return compiled_once(folder, "program", ["source"], lambda path: path.write_text("ours"))


def test_a_new_cache_is_for_its_owner_alone(tmp_path):
    usual = os.umask(0)
    try:
        file = compiled_in(tmp_path / "cache" / "part")
    finally:
        os.umask(usual)
    made = [tmp_path / "cache", tmp_path / "cache/part", *(tmp_path / "cache/part").iterdir()]
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in made} == {0}
    assert compiled_in(file.parent) == file


@pytest.mark.parametrize("place", [".", "part", "part/program"])
def test_a_cache_that_others_may_write_to_is_not_used(tmp_path, place):
    """A file of the right name may be anybody's."""
    file = compiled_in(tmp_path / "part")
    where = file if place == "part/program" else tmp_path / place
    where.chmod(0o777)
    with pytest.raises(CacheError, match=r"others may write to .*Set XDG_CACHE_HOME"):
        compiled_in(tmp_path / "part")


@needs_root
def test_a_cache_of_another_user_is_not_used(tmp_path):
    """As after `su` with the HOME of another user."""
    os.chown(compiled_in(tmp_path / "part").parent, 12345, 12345)
    with pytest.raises(CacheError, match="belongs to user 12345"):
        compiled_in(tmp_path / "part")


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("kept")
    lock = compiled_in(tmp_path / "part").with_suffix(".lock")
    lock.unlink()
    lock.symlink_to(tmp_path / "precious")
    with pytest.raises(CacheError, match="is a link"):
        compiled_in(tmp_path / "part")
    assert (tmp_path / "precious").read_text() == "kept"


def test_a_relative_cache_is_none(monkeypatch, tmp_path):
    """It would be in the current folder, which may be another user's."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for given in ("cache", ".", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", given)
        assert cache_folder("part") == tmp_path / ".cache/switchgnn/part"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert cache_folder("part") == tmp_path / "elsewhere/switchgnn/part"


@pytest.mark.parametrize(
    ("home", "cache", "reason"),
    [
        # As in a container with a user id of its own; that of a system user; a cache of others.
        (None, None, "home directory"),
        ("file", None, "File exists"),
        (None, "open", "others may write to"),
    ],
)
def test_another_cache_where_the_usual_one_cannot_be_used(
    home, cache, reason, monkeypatch, tmp_path, caplog
):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(pwd, "getpwuid", dict[int, object]().__getitem__)
    for name, value in (("HOME", home), ("XDG_CACHE_HOME", cache)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, str(tmp_path / value))
    folder = cache_folder("part")
    assert temporary in folder.parents
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert cache_folder("part") == folder
    (line,) = caplog.messages
    assert line.startswith(f"Compiled programs are kept in {folder.parent}: ")
    assert reason in line
    temporary.chmod(0o777)
    with pytest.raises(CacheError, match=rf"{reason}.* others may write to {temporary}"):
        cache_folder("part")


@needs_root
def test_a_cache_where_programs_cannot_run_is_not_used(tmp_path):
    caches, temporary = (tmp_path / name for name in ("caches", "temporary"))
    caches.mkdir()
    temporary.mkdir()
    show = 'from switchgnn.base.native import cache_folder; print(cache_folder("part"))'
    mounted = 'mount -t tmpfs -o noexec,mode=700 none "$XDG_CACHE_HOME" && exec "$@"'
    done = run_program(
        ["unshare", "-m", "sh", "-c", mounted, "sh", sys.executable, "-c", show],
        env=os.environ | {"XDG_CACHE_HOME": str(caches), "TMPDIR": str(temporary)},
        check=True,
    )
    assert done.stdout.startswith(str(temporary))
    assert "mounted noexec. Set XDG_CACHE_HOME to a folder" in done.stderr


def test_what_gzip_packed_is_unpacked_within_a_limit(tmp_path):
    file, content = tmp_path / "file", b"one two\r\n" * 999
    file.write_bytes(gzip.compress(content))
    with files.open_unpacked(file) as unpacked:
        assert unpacked.read() == content
    assert files.read_regular_text(file, "ascii").count("two\n") == 999
    for limit, fits in ((len(content), True), (len(content) - 1, False)):
        before = open_files()
        with nullcontext() if fits else pytest.raises(OSError, match="more than 8,990 bytes"):
            files.open_unpacked(file, files.UnpackLimit(limit, 0)).close()
        assert open_files() == before
    file.write_bytes(gzip.compress(bytes(files.PACKED.allowance + 1)))
    with pytest.raises(OSError, match="would unpack"):
        files.open_unpacked(file)


@pytest.mark.parametrize("damage", [slice(0, -9), slice(0, 20), slice(0, 3)])
def test_damaged_gzip_is_an_error_of_reading(tmp_path, damage):
    (tmp_path / "file").write_bytes(gzip.compress(b"one two\n" * 9)[damage])
    with pytest.raises(OSError, match="gzip cannot unpack it"):
        files.open_unpacked(tmp_path / "file")


@pytest.mark.parametrize(
    ("name", "expected"), [("a.CSV", ".csv"), ("a.csv.GZ", ".csv"), ("a.b", ".b"), ("a.gz", "")]
)
def test_the_format_is_named_before_gz(name, expected):
    assert files.format_of(Path(name)) == expected


# Writes a file as GCC does, and interrupts the program that has started it and waits for it: that
# has given it all of the source.
COMPILER = """#!/bin/sh
cat
touch "$TMPDIR/ccXXXX.s"
kill -INT $PPID
exec sleep 1000
"""
INTERRUPTED = """
import sys
from pathlib import Path
from switchgnn.base.native import compile_unit, compiled_once
compile = lambda output: compile_unit(sys.argv[1:2], "", "nothing", output)
compiled_once(Path(sys.argv[2]), "program", ["source"], compile)
"""


def test_an_interrupted_compiler_leaves_no_files(tmp_path):
    compiler, scratch, cache = (tmp_path / name for name in ("c++", "scratch", "cache"))
    compiler.write_text(COMPILER)
    compiler.chmod(0o700)
    scratch.mkdir()
    done = run_program(
        [sys.executable, "-c", INTERRUPTED, compiler, cache],
        env={**os.environ, "TMPDIR": str(scratch)},
        seconds=60,
    )
    assert "KeyboardInterrupt" in done.stderr
    assert list(scratch.iterdir()) == []
    assert [path.suffix for path in cache.iterdir()] == [".lock"]
