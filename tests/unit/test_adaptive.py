"""`stratal.adaptive` keeps the names of `stratal.planning`."""

from stratal import adaptive, planning


def test_the_former_name_has_all_that_the_room_has():
    assert [getattr(adaptive, name) for name in planning.__all__] == [
        getattr(planning, name) for name in planning.__all__
    ]
