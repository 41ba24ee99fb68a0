"""One round of the storm; ``make storm`` runs many."""

from __future__ import annotations


def test_a_worker_s_death_at_a_random_point_leaves_the_right_table(packages, tmp_path):
    from streaming_storm import storm

    done = storm(tmp_path / "storm", rounds=1, seed=5, longest_seconds=2.0, kinds=("worker",))

    assert done["worker"] == 1, done
    assert done["went_on"] + done["ended"] == 1, "the query lived through it, or said why not"
