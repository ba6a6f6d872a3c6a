"""The demonstration's last words are one line."""


def test_the_demonstration_ends_with_the_truth_in_one_line(run_command):
    done = run_command("demo")

    assert "From all 1,497 labels: 94.0%, inside the interval." in done.stdout.splitlines()
