"""The demonstration's last words are one line."""


def test_the_demonstration_ends_with_the_truth_in_one_line(run_command):
    done = run_command("demo")

    assert "From all 1,497 labels: 94.0%, inside the interval." in done.stdout.splitlines()


def test_with_files_the_demonstration_leaves_the_answer_to_the_next_steps(run_command, tmp_path):
    printed = run_command("demo", "--output", tmp_path / "demo").stdout

    assert "Accuracy" not in printed
    assert f"Wrote {tmp_path / 'demo' / 'predictions.parquet'}" in printed
    assert printed.splitlines()[-1].startswith("Next: stratal plan ")
