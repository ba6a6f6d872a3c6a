"""Which journal goes with which disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from stratal.errors import InputError
from stratal.study.database import file_system, journal_for


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_network_disk_gets_a_rollback_journal_and_refuses_the_other(tmp_path, kind):
    assert journal_for(tmp_path, kind_of=lambda folder: kind) == "rollback"
    with pytest.raises(InputError, match="network disk"):
        journal_for(tmp_path, "wal", kind_of=lambda folder: kind)
    assert journal_for(tmp_path, kind_of=lambda folder: "ext4") == "wal"


def test_the_kind_of_disk_is_read_from_the_mounts(tmp_path):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "21 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
        f"36 21 0:31 / {str(tmp_path).replace(' ', chr(92) + '040')} rw shared:2 - nfs4 host:/data rw\n"
    )

    assert file_system(tmp_path / "study", mounts) == "nfs4"
    assert file_system(Path("/"), mounts) == "ext4"
    assert file_system(tmp_path, tmp_path / "none") == ""
