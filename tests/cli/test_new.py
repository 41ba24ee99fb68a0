"""``burler new``: what it makes runs, discovers and tests green; what it can't make leaves nothing behind."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tapprocess import ROOT

from support.cli import PYTHON, Ended, burler, environment, python, shell

KINDS = ("rest", "database", "file")
# Every message goes through singer-python's own reader.
PARSE = (
    "import sys, warnings\n"
    "warnings.simplefilter('ignore')\n"
    "import singer\n"
    "for line in sys.stdin:\n"
    "    print(type(singer.parse_message(line)).__name__)\n"
)


def new(*args: str | Path, cwd: Path) -> Ended:
    return burler("new", *args, cwd=cwd)


def there(folder: Path) -> list[str]:
    """All files below a folder, hidden ones too."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A fresh project of each kind; tests copy what they change."""
    folder = tmp_path_factory.mktemp("new")
    for kind in KINDS:
        ended = new(f"tap-{kind}s", "--kind", kind, cwd=folder)
        assert ended.code == 0, ended.stderr
    return {kind: folder / f"tap-{kind}s" for kind in KINDS}


@pytest.fixture
def project(made: dict[str, Path], tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A copy of one project, by its kind."""
    source = made[request.param]
    return Path(shutil.copytree(source, tmp_path / source.name))


def of_kinds(*kinds: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("project", kinds, indirect=True)


@contextmanager
def sample_api(project: Path) -> Iterator[str]:
    """The project's own sample server as its README starts it, on a free port."""
    server = subprocess.Popen(
        [PYTHON, "sample_server.py", "0"], cwd=project, env=environment(), stderr=subprocess.PIPE, text=True
    )
    killer = threading.Timer(60, server.kill)
    killer.start()
    try:
        assert server.stderr is not None
        found = re.search(r"http://127\.0\.0\.1:\d+", server.stderr.readline())
        assert found
        yield found[0]
    finally:
        server.terminate()
        server.communicate(timeout=30)
        killer.cancel()


@contextmanager
def source_of(project: Path) -> Iterator[str]:
    """What the tap reads, ready; gives the config file to read it with: the sample, but for the port."""
    if project.name == "tap-rests":
        with sample_api(project) as url:
            config = json.loads((project / "config.sample.json").read_text())
            (project / "here.json").write_text(json.dumps({**config, "base_url": url}))
            yield "here.json"
        return
    if project.name == "tap-databases":
        assert python("sample_database.py", cwd=project).code == 0
    yield "config.sample.json"


def package(project: Path) -> str:
    return project.name.replace("-", "_")


def singer_types(stdout: bytes, cwd: Path) -> list[str]:
    done = subprocess.run([PYTHON, "-c", PARSE], cwd=cwd, input=stdout, capture_output=True, timeout=60, check=True)
    return done.stdout.decode().split()


def rows(messages: list[dict[str, Any]]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for message in messages:
        if message["type"] == "RECORD":
            counted[message["stream"]] = counted.get(message["stream"], 0) + 1
    return counted


# ---- what is made ----------------------------------------------------------------------------------

EXPECTED = {
    "rest": {"companies": 5, "contacts": 25, "notes": 25},
    "database": {"big_orders": 2, "customers": 2, "order_lines": 3, "orders": 3},
    "file": {"orders": 5, "events": 3},
}


@of_kinds(*KINDS)
def test_its_own_tests_are_green(project: Path) -> None:
    ended = python("-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", cwd=project, timeout=120)
    assert ended.code == 0, ended.stdout.decode()
    assert re.search(rb"\d+ passed", ended.stdout)
    assert b"skipped" not in ended.stdout


@of_kinds("database")
def test_no_connection_is_left_open(project: Path) -> None:
    """Python 3.13 tells of database connections that nobody closed; this looks at all of them in any Python."""
    code = f"""
import sqlite3
import sample_database
from burler.testing import run_tap

made, connect = [], sqlite3.connect

class Noted(sqlite3.Connection):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        made.append(self)

def is_open(one):
    try:
        return bool(one.cursor())
    except sqlite3.ProgrammingError:
        return False

sqlite3.connect = sqlite3.dbapi2.connect = lambda *args, **more: connect(*args, **more, factory=Noted)
sample_database.make("sample.db")
from {package(project)} import tap
assert not run_tap(tap, {{"url": "sqlite:///sample.db"}}).result.errors
assert not run_tap(tap, {{"url": "sqlite:///sample.db"}}, limit=1).result.errors
print(len(made) > 2, sum(map(is_open, made)))
"""
    ended = python("-c", code, cwd=project)
    assert (ended.code, ended.stdout) == (0, b"True 0\n"), ended.stderr


@of_kinds(*KINDS)
def test_a_project_asks_for_singer_burler(project: Path) -> None:
    """What the index calls burler is another project: a tap asks for singer-burler, and its README says where it is."""
    declared = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    extras = declared["optional-dependencies"].values()
    asked = [*declared["dependencies"], *(requirement for extra in extras for requirement in extra)]
    assert [one for one in asked if re.match(r"singer-burler\b", one)] and not [
        one for one in asked if one[:6] == "burler"
    ]
    for name in ("pyproject.toml", "README.md"):
        text = (project / name).read_text()
        assert text.count("pip install /path/to/burler") == 1
        assert text.index("pip install /path/to/burler") < text.index("pytest")


@of_kinds("rest", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("database", "file")))
def test_its_tests_can_fail(project: Path) -> None:
    """The tests of a project judge the tap: a broken one is found (templates seldom move: most at night)."""
    broken = {
        "tap-rests": ("client.py", 'NextUrl("next")', 'NextUrl("nex")'),
        "tap-databases": ("__init__.py", 'replication_keys=config.get("replication_key")', "replication_keys=None"),
        "tap-files": ("__init__.py", 'settle_seconds=config["settle_seconds"]', "remember=False"),
    }
    name, right, wrong = broken[project.name]
    path = project / package(project) / name
    assert right in path.read_text()
    path.write_text(path.read_text().replace(right, wrong))
    ended = python("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=project, timeout=120)
    assert ended.code == 1 and b" passed" in ended.stdout, ended.stdout.decode()


@of_kinds(*KINDS)
def test_it_discovers_and_runs(project: Path) -> None:
    kind = project.name.removeprefix("tap-")[:-1]
    with source_of(project) as config:
        found = burler("discover", package(project), "--config", config, cwd=project)
        assert (found.code, found.stderr) == (0, "")
        assert {one["tap_stream_id"] for one in json.loads(found.stdout)["streams"]} == set(EXPECTED[kind])
        ended = burler("run", package(project), "--config", config, cwd=project)
        assert ended.code == 0, ended.stderr
        # The sample API is busy at first, on purpose.
        busy = 2 if kind == "rest" else 0
        assert sum("; retry " in line for line in ended.lines("WARNING")) == len(ended.lines("WARNING")) == busy
        assert rows(ended.messages) == EXPECTED[kind]
        singers = singer_types(ended.stdout, project)
        assert len(singers) == len(ended.messages) and singers.count("RecordMessage") == sum(EXPECTED[kind].values())
        assert "sample-token" not in ended.stdout.decode() + ended.stderr

        (project / "state.json").write_text(json.dumps(ended.messages[-1]["value"]))
        again = burler("run", package(project), "--config", config, "--state", "state.json", cwd=project)
        assert again.code == 0, again.stderr
        # What is at the bookmark comes again (two contacts with their notes, an order), and what is a full table.
        inclusive = {
            "rest": {"companies": 5, "contacts": 2, "notes": 1},
            "database": EXPECTED["database"] | {"orders": 1},
            "file": {},
        }
        assert rows(again.messages) == inclusive[kind]


@of_kinds("database")
def test_a_replication_key_from_the_catalog(project: Path) -> None:
    """As the README says: choose one in the catalog; the next run begins at the bookmark."""
    assert python("sample_database.py", cwd=project).code == 0
    (project / "config.json").write_text('{"url": "sqlite:///sample.db"}')  # names none
    catalog = json.loads(burler("discover", package(project), "--config", "config.json", cwd=project).stdout)
    (orders,) = [one for one in catalog["streams"] if one["tap_stream_id"] == "orders"]
    assert orders["replication_method"] == "FULL_TABLE"
    (root,) = [node["metadata"] for node in orders["metadata"] if not node["breadcrumb"]]
    assert set(root["valid-replication-keys"]) == {"id", "customer_id", "amount", "updated_at"}
    root |= {"selected": True, "replication-method": "INCREMENTAL", "replication-key": "updated_at"}
    (project / "catalog.json").write_text(json.dumps(catalog))
    args = ("run", package(project), "--config", "config.json", "--catalog", "catalog.json")
    first = burler(*args, cwd=project)
    assert rows(first.messages) == {"orders": 3}, first.stderr
    (project / "state.json").write_text(json.dumps(first.messages[-1]["value"]))
    assert rows(burler(*args, "--state", "state.json", cwd=project).messages) == {"orders": 1}


@of_kinds("database")
def test_a_table_that_was_interrupted_goes_on_at_its_key(project: Path) -> None:
    """A row that does not fit ends the stream; once it is mended, what was out before does not come again."""
    with source_of(project) as config, closing(sqlite3.connect(project / "sample.db")) as database:
        with database:
            database.execute("insert into order_lines values (2, 'x', 'cap'), (3, 1, 'hat')")
        args = ("run", package(project), "--config", config, "--select", "order_lines")
        first = burler(*args, cwd=project)
        assert first.code == 1 and "line='x': field 'line' is a string" in first.one_critical()
        (project / "state.json").write_text(json.dumps(first.messages[-1]["value"]))
        with database:
            database.execute("update order_lines set line = 2 where line = 'x'")
        second = burler(*args, "--state", "state.json", cwd=project)
        assert second.code == 0, second.stderr
    came = [[m for m in ended.messages if m["type"] == "RECORD"] for ended in (first, second)]
    keys = [[(m["record"]["order_id"], m["record"]["line"]) for m in some] for some in came]
    assert keys == [[(1, 1), (1, 2), (2, 1)], [(2, 1), (2, 2), (3, 1)]]
    assert len({m["version"] for some in came for m in some}) == 1


@of_kinds("file")
def test_a_folder_whose_name_looks_like_a_pattern(project: Path) -> None:
    """Its letters mean themselves, and a slash at its end is no matter."""
    (project / "sample").rename(project / "in [1]*")
    (project / "config.json").write_text('{"folder": "in [1]*/", "settle_seconds": 0}')
    ended = burler("run", package(project), "--config", "config.json", cwd=project)
    assert (ended.code, rows(ended.messages)) == (0, EXPECTED["file"]), ended.stderr


@of_kinds("file")
def test_the_schema_of_events_is_what_infer_says(project: Path) -> None:
    """But for the nulls, and what the tap adds to each row."""
    inferred = json.loads(burler("infer", "sample/events-2024-05.jsonl", cwd=project).stdout)["properties"]
    written = json.loads((project / package(project) / "schemas" / "events.json").read_text())["properties"]
    for name, part in inferred.items():
        kinds = written[name]["type"]
        assert part["type"] in kinds if isinstance(kinds, list) else part["type"] == kinds
        assert part.get("format") == written[name].get("format")
    assert set(written) - set(inferred) == {"_file", "_row", "_modified"}


@of_kinds(*KINDS)
def test_the_readme_says_what_about_says(project: Path) -> None:
    said = burler("about", package(project), "--format", "markdown", cwd=project)
    assert (said.code, said.stderr) == (0, "")
    readme = (project / "README.md").read_text()
    assert "{{" not in readme and "example-" not in readme
    sections = dict(re.findall(r"^## (\w+)\n\n(.*?)(?=^## |\Z)", said.stdout.decode(), re.DOTALL | re.MULTILINE))
    assert sections["Config"].strip() in readme
    if project.name == "tap-databases":  # its streams are found; the README speaks of a table with and without a key
        assert readme.count("Every row that the function yields arrives at least once") == 2
        assert "`updated_at` equals the bookmark may come again" in readme
        assert "goes on in the next run at the greatest `id` that is out" in readme and "`*`" not in readme
    else:
        assert sections["Streams"].strip() in readme
        assert sections["Delivery"].strip() in readme


@of_kinds(*KINDS)
def test_the_plugin_definition_is_what_about_says(project: Path) -> None:
    said = burler("about", package(project), "--format", "meltano", cwd=project)
    assert (said.code, said.stderr) == (0, "")
    assert (project / "meltano-plugin.yml").read_text() == said.stdout.decode()
    assert f"executable: {project.name}\n" in said.stdout.decode()


@of_kinds(*KINDS)
def test_the_code_compiles_and_names_are_its_own(project: Path) -> None:
    for path in project.rglob("*"):
        if path.suffix == ".py":
            compile(path.read_text(), str(path), "exec")
        assert "example" not in path.name
        if path.is_file() and path.suffix != ".pyc":
            assert not re.search(r"tap[-_]example|\{\{|\}\}\}", path.read_text(), re.IGNORECASE), path


def test_secrets_and_rows_stay_out_of_the_repository(made: dict[str, Path], tmp_path: Path) -> None:
    """git itself judges the .gitignore."""
    git = shutil.which("git")
    assert git, "the tests need git"
    project = Path(shutil.copytree(made["file"], tmp_path / "tap-files"))
    for name in ("config.json", "state.json"):
        (project / name).write_text("{}")
    before = set(there(project))
    done = burler("run", package(project), "--config", "config.sample.json", "--batch", cwd=project)
    left = set(there(project)) - before
    assert done.code == 0 and left, done.stderr
    subprocess.run([git, "init", "-q", "."], cwd=project, check=True, timeout=30)
    asked = subprocess.run(
        [git, "status", "--short", "-uall"], cwd=project, check=True, timeout=30, capture_output=True, text=True
    )
    listed = [line.split()[-1] for line in asked.stdout.splitlines()]
    assert "config.sample.json" in listed and ".gitignore" in listed
    assert not {"config.json", "state.json", *left} & set(listed)


def test_what_is_printed(tmp_path: Path) -> None:
    ended = new("tap-crm", cwd=tmp_path)
    assert (ended.code, ended.stderr) == (0, "")
    text = ended.stdout.decode()
    assert text.startswith("made tap-crm/ for a REST API")
    listed = re.findall(r"^  (\S+)$", text, re.MULTILINE)
    assert sorted(listed) == there(tmp_path / "tap-crm")  # and no bytecode
    assert "  cd tap-crm\n  pip install -e '.[test]' && pytest\n" in text
    assert [path.name for path in tmp_path.iterdir()] == ["tap-crm"]


def test_names_in_both_spellings(tmp_path: Path) -> None:
    assert new("tap_crm_2", "--kind", "file", "--into", tmp_path, cwd=ROOT).code == 0
    assert (tmp_path / "tap-crm-2" / "tap_crm_2" / "__init__.py").is_file()
    assert new("tap-" + 60 * "x", "--kind", "file", cwd=tmp_path).code == 0


def test_a_project_in_an_empty_folder_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "tap-crm").mkdir()
    assert new("tap-crm", cwd=tmp_path).code == 0
    assert (tmp_path / "tap-crm" / "pyproject.toml").is_file()


@pytest.mark.parametrize("into", ["newp", "a/b c/newp"])
def test_the_folder_to_make_it_in_is_made(tmp_path: Path, into: str) -> None:
    ended = new("tap-crm", "--into", into, cwd=tmp_path)
    assert (ended.code, ended.stderr) == (0, "")
    assert ended.stdout.decode().startswith(f"made {into}/tap-crm/ for a REST API")
    assert (tmp_path / into / "tap-crm" / "tap_crm" / "__init__.py").is_file()
    assert [path.name for path in (tmp_path / into).iterdir()] == ["tap-crm"]
    assert [path.name for path in tmp_path.iterdir()] == [into.partition("/")[0]]


# ---- what can't be made -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("crm", "Did you mean: burler new tap-crm"),
        ("CRM", "Did you mean: burler new tap-crm"),
        ("Tap CRM", "Did you mean: burler new tap-crm"),
        ("tap--crm", "Did you mean: burler new tap-crm"),
        ("tap-crm-", "Did you mean: burler new tap-crm"),
        ("tap-crm.py", "Did you mean: burler new tap-crm-py"),
        ("../tap-crm", "Did you mean: burler new tap-crm  (--into says in which folder)"),
        ("/etc/tap-crm", "--into says in which folder"),
        ("tap-crm/", "Did you mean: burler new tap-crm"),
        ("tap", "like tap-crm"),
        ("tap-", "like tap-crm"),
        ("", "like tap-crm"),
        ("..", "like tap-crm"),
        ("日本", "like tap-crm"),
        ("tap-crm\n", "Did you mean: burler new tap-crm"),
        ("tap-crm;rm -rf x", "Did you mean: burler new tap-crm-rm-rf-x"),
        ('tap-crm"""', "Did you mean: burler new tap-crm"),
        ("tap-" + 61 * "x", "at most 64 characters"),
        ("tap-" + 9999 * "x", "at most 64 characters"),
    ],
)
def test_names_that_are_refused(tmp_path: Path, name: str, cure: str) -> None:
    ended = new("--", name, cwd=tmp_path)
    assert (ended.code, ended.stdout) == (2, b"")
    said = ended.one_critical()
    assert cure in said and len(said) < 400
    assert there(tmp_path) == []


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "tap-full").mkdir()
    (tmp_path / "tap-full" / "mine.txt").write_text("mine")
    (tmp_path / "tap-file").write_text("mine")
    (tmp_path / "tap-gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    (tmp_path / "tap-link").symlink_to(tmp_path / "empty")
    for name in ("tap-full", "tap-file", "tap-gone", "tap-link"):
        ended = new(name, cwd=tmp_path)
        assert (ended.code, ended.stdout) == (2, b"")
        assert f"{name} is there already" in ended.one_critical()
    assert there(tmp_path) == ["tap-file", "tap-full/mine.txt"]
    assert (tmp_path / "tap-link").is_symlink()


def test_wrong_use(tmp_path: Path) -> None:
    for args, said in (
        ([], "Missing argument 'NAME'"),
        (["tap-crm", "--kind", "soap"], "'soap' is not one of 'rest', 'database', 'file'"),
        (["tap-crm", "--into", sys.executable], "is no folder"),
        (["tap-crm", "--into", f"{sys.executable}/deep/er"], f"{sys.executable} is no folder"),
        (["tap-crm", "--into", "x" * 300], "File name too long"),
    ):
        ended = new(*args, cwd=tmp_path)
        assert (ended.code, ended.stdout) == (2, b"")
        assert said in ended.one_critical()
    assert there(tmp_path) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that nobody may write to")
def test_a_place_that_can_not_be_written(tmp_path: Path) -> None:
    """/proc takes no folders, not even from root."""
    ended = new("tap-crm", "--into", "/proc", cwd=tmp_path)
    assert (ended.code, ended.stdout) == (1, b"")
    assert "/proc/tap-crm can't be made: " in ended.one_critical()


def test_no_room(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk: a write fails in the middle."""
    (tmp_path / "in").mkdir()
    ended = shell("ulimit -f 2; PYTHONDONTWRITEBYTECODE=1 $BURLER new tap-crm --into in", cwd=tmp_path)
    assert (ended.code, ended.stdout) == (1, b"")
    assert "in/tap-crm can't be made: File too large. Nothing was left behind." in ended.one_critical()
    assert list((tmp_path / "in").iterdir()) == []
    ended = shell("ulimit -f 2; PYTHONDONTWRITEBYTECODE=1 $BURLER new tap-crm --into in/a/b", cwd=tmp_path)
    assert ended.code == 1 and list((tmp_path / "in").iterdir()) == []


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.nightly), signal.SIGKILL],
    ids=lambda number: getattr(number, "name", None),
)
def test_a_run_that_is_ended_leaves_nothing_half_made(made: dict[str, Path], tmp_path: Path, number: int) -> None:
    """Ended at the moment its hidden folder appears, or some milliseconds later; at night also by Ctrl-C, which is as
    SIGTERM."""
    whole = there(made["rest"])
    caught = 0
    for attempt in range(3):
        place = tmp_path / str(attempt)
        place.mkdir()
        process = subprocess.Popen(
            [PYTHON, "-m", "burler", "new", "tap-rests"],
            cwd=place,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        limit = time.monotonic() + 30
        while not any(place.iterdir()) and process.poll() is None and time.monotonic() < limit:
            time.sleep(0.0005)
        time.sleep(attempt * 0.004)
        process.send_signal(number)
        _out, stderr = process.communicate(timeout=30)
        visible = [path.name for path in place.iterdir() if not path.name.startswith(".")]
        hidden = [path.name for path in place.iterdir() if path.name.startswith(".")]
        assert visible in ([], ["tap-rests"])
        if visible:
            assert there(place / "tap-rests") == whole
        caught += not visible
        if number != signal.SIGKILL:
            assert hidden == [] and b"Traceback" not in stderr, stderr
            assert process.returncode in (0, 128 + number, -number)
    assert caught, "no run was ended in time"
