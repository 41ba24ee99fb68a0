"""The benchmark's rows about BATCH: what burler writes into files is compared, and wrong files would be seen."""

import copy
import csv
import gzip
import io
import json

import pytest

ROWS = 5
PER_FILE = 3


def written(folder, rows, form):
    """A file with rows, as the library of its format writes it; gives its URL."""
    path = folder / f"{form}-{len(list(folder.iterdir()))}"
    if form == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif form == "csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(rows[0])
        for row in rows:
            writer.writerow(value if type(value) is str else json.dumps(value) for value in row.values())
        path.write_bytes(gzip.compress(text.getvalue().encode()))
    else:
        path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return path.as_uri()


def messages(bench, folder, form, change=lambda rows: None):
    """What burler should print, and the files that it names."""
    standard = bench["standard"]
    rows = copy.deepcopy(list(standard.rows(ROWS)))
    change(rows)
    out = [{"type": "SCHEMA", "stream": "std", "schema": standard.SCHEMA, "key_properties": ["id"]}]
    for first in range(0, len(rows), PER_FILE):
        part = rows[first : first + PER_FILE]
        out.append(
            {
                "type": "BATCH",
                "stream": "std",
                "format": {"name": form, "options": {}},
                "manifest": [written(folder, part, form)],
                "size": len(part),
                "time_extracted": "2024-05-06T07:08:09.123456Z",
                "version": 7,
            }
        )
    out.append({"type": "STATE", "value": {"bookmarks": {"std": {"version": 7}}}})
    return out


def wanted(bench):
    return bench["checks"].parse("\n".join(map(json.dumps, bench["standard"].rows(ROWS))).encode())


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_the_right_files_pass(bench, tmp_path, form):
    assert bench["batch_checks"].compare(messages(bench, tmp_path, form), wanted(bench)) == ROWS


WRONG_ROWS = {
    "a value": lambda rows: rows[4].update(a="other"),
    "a nested value": lambda rows: rows[1]["nested"].update(x=77),
    "an item": lambda rows: rows[1]["arr"].append(1),
    "a float": lambda rows: rows[1].update(f2=rows[1]["f2"] + 1e-9),
    "another moment": lambda rows: rows[3].update(ts="2024-01-02T03:04:06Z"),
    "a field less": lambda rows: [row.pop("arr") for row in rows],
    "a row less": lambda rows: rows.pop(),
    "a row twice": lambda rows: rows.insert(1, copy.deepcopy(rows[1])),
    "rows in another order": lambda rows: rows.insert(0, rows.pop()),
}


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("name", WRONG_ROWS)
def test_wrong_rows_in_a_file_are_an_error(bench, tmp_path, form, name):
    found = messages(bench, tmp_path, form, WRONG_ROWS[name])
    with pytest.raises(bench["checks"].Wrong):
        bench["batch_checks"].compare(found, wanted(bench))


WRONG_MESSAGES = {
    "no SCHEMA": lambda found: found.pop(0),
    "another schema": lambda found: found[0].update(schema={}),
    "a file less": lambda found: found.pop(1),
    "one file for all": lambda found: found[2]["manifest"].extend(found.pop(1)["manifest"]),
    "another size": lambda found: found[1].update(size=4),
    "another stream": lambda found: found[1].update(stream="other"),
    "no time": lambda found: found[1].update(time_extracted="now"),
    "a RECORD beside": lambda found: found.insert(1, {"type": "RECORD", "stream": "std", "record": {}}),
    "no STATE": lambda found: found.pop(),
    "an old STATE": lambda found: found[-1].update(value={"bookmarks": {"std": {"version": 6}}}),
}


@pytest.mark.parametrize("name", WRONG_MESSAGES)
def test_wrong_messages_are_an_error(bench, tmp_path, name):
    found = messages(bench, tmp_path, "jsonl")
    WRONG_MESSAGES[name](found)
    with pytest.raises(bench["checks"].Wrong):
        bench["batch_checks"].compare(found, wanted(bench))


def test_files_of_a_measured_run_do_not_stay(bench, tmp_path):
    measure, case = bench["measure"], bench["cases"].Case(bench["batch_cases"].BURLER, "jsonl")
    measure.Bench(tmp_path, peers=False).run(case, 1000)
    assert not list(tmp_path.rglob("*.gz"))
