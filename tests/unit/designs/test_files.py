"""Partial files and folders, where two runs meet."""

from __future__ import annotations

import errno
import shutil

import pytest

import stratal.designs.files as files
from stratal import InputError
from stratal.designs.files import partial_folder, replacing


@pytest.fixture
def cleared_once(monkeypatch):
    """Another run clears the first partial entry before it is locked, in one of the two ways there are."""

    def prepare(keeps_lock):
        usual, seen = files.lock_file, []

        def locked(path):
            seen.append(path)
            if len(seen) > 1:
                return usual(path)
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            return None if keeps_lock else usual(path)

        monkeypatch.setattr(files, "lock_file", locked)
        return seen

    return prepare


@pytest.mark.parametrize("keeps_lock", [True, False], ids=["while it clears", "when it has cleared"])
def test_a_folder_that_another_run_cleared_is_made_again(tmp_path, cleared_once, keeps_lock):
    seen = cleared_once(keeps_lock)
    with partial_folder(tmp_path / "audit") as partial:
        (partial / "note.txt").write_text("whole")
        assert [entry.name for entry in tmp_path.iterdir()] == [partial.name]
    assert len(seen) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("keeps_lock", [True, False], ids=["while it clears", "when it has cleared"])
def test_a_file_that_another_run_cleared_is_made_again(tmp_path, cleared_once, keeps_lock):
    cleared_once(keeps_lock)
    with replacing(tmp_path / "note.txt") as partial:
        partial.write_text("whole")
    assert [entry.name for entry in tmp_path.iterdir()] == ["note.txt"]
    assert (tmp_path / "note.txt").read_text() == "whole"


def test_where_there_are_no_locks_files_are_written_without(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "lock_file", lambda path: None)
    with replacing(tmp_path / "note.txt") as partial:
        partial.write_text("whole")
    with partial_folder(tmp_path / "audit") as folder:
        (folder / "note.txt").write_text("whole")
    assert (tmp_path / "note.txt").read_text() == "whole"
    assert [entry.name for entry in tmp_path.iterdir()] == ["note.txt"]


def test_a_write_that_fails_names_the_file(tmp_path):
    """On a full disk the message was without a path."""
    wanted = r"note\.txt cannot be written \(No space left"
    with pytest.raises(InputError, match=wanted), replacing(tmp_path / "note.txt"):
        raise OSError(errno.ENOSPC, "No space left on device")

    assert list(tmp_path.iterdir()) == []
