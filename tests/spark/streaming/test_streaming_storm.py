"""One round of the storm; ``make storm`` runs many."""

from __future__ import annotations


def test_kills_at_random_points_leave_the_right_table(packages, tmp_path):
    from streaming_storm import storm

    done = storm(tmp_path / "storm", rounds=1, seed=5, longest_seconds=2.0)
    assert sum(done[kind] for kind in ("driver", "jvm", "pump", "worker")) == 1
