"""The benchmark of verify runs, on few rows; its figures are for people."""

from pathlib import Path


def test_it_measures_both(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    import verify_bench

    ran, looked = verify_bench.compare(2_000, 1, keyed=True)
    assert ran.megabytes > 10 and looked.megabytes > 10
    assert isinstance(ran.seconds, float) and isinstance(looked.seconds, float)
