"""The pages on running unattended: scripts are typed, units are read by systemd, commands of manifests are run."""

from __future__ import annotations

import ast
import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from burler import errors
from burler.errors import BurlerError, UsageError
from tests.console_pages import Shell, matches, steps
from tests.tutorial_shop import DOCS, fenced, saved, shop_in


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with the tap of the tutorial, and its shop's port."""
    folder = tmp_path_factory.mktemp("shop")
    with shop_in(folder) as port:
        yield folder, port


def test_the_scripts_do_what_the_pages_show(shop):
    """docs/operations.md, and docs/cron.md behind it, in one folder."""
    folder, port = shop
    shell = Shell(folder)
    typed = 0
    try:
        for name in ("operations.md", "cron.md"):
            page = (DOCS / name).read_text(encoding="utf-8").replace("8321", str(port))
            for kind, what, text in steps(page):
                if kind == "save":
                    (folder / what).write_text(text, encoding="utf-8")
                else:
                    said = shell.type(what)
                    assert matches(text, said), f"{name}: $ {what}\n{said}\n--- the page shows:\n{text}"
                    typed += 1
    finally:
        shell.close()
    assert typed > 20


def _run(folder: Path, command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run what stands on a page, with the tests' burler and the tutorial's tap in place of those that it names."""
    for end in ("srv/shop", "srv/crm"):
        command = command.replace(f"/{end}/env/bin/burler", "env/bin/burler")
    words = [os.path.expandvars(word) for word in shlex.split(command.replace("tap_crm.py", "tap_shop.py"))]
    path = f"{folder / 'env' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        words, cwd=folder, env={**os.environ, "PATH": path, **environment}, capture_output=True, text=True, check=False
    )


def _keeps_the_state(lake: Path) -> bool:
    state = json.loads((lake / "raw" / "tap-shop" / "state.json").read_text())
    return bool(state["value"]["bookmarks"]["orders"])


# ---- systemd ---------------------------------------------------------------------------------------


def _unit(text: str) -> configparser.ConfigParser:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    return unit


UNITS = saved("systemd.md")
SERVICES = [name for name in UNITS if name.endswith(".service")]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here: apt install systemd")
def test_systemd_reads_the_units(tmp_path):
    """systemd says nothing of them. The programs that they name are not here, and it would say so."""
    for name, text in UNITS.items():
        (tmp_path / name).write_text(re.sub(r"/srv/\w+/(env/bin/burler|tail-crm.sh)", "/bin/true", text))
    assert len(SERVICES) == 3
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(str(tmp_path / name) for name in UNITS)],
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert not [name for name in UNITS if name in said], said
    (when,) = re.findall(r"^OnCalendar=(.*)$", UNITS["shop.timer"], re.MULTILINE)
    subprocess.run(["systemd-analyze", "calendar", when], check=True, capture_output=True)


@pytest.mark.parametrize("name", SERVICES)
def test_a_unit_gives_the_tap_longer_than_it_needs_and_does_not_repeat_mistakes(name):
    service = _unit(UNITS[name])["Service"]
    assert int(service["TimeoutStopSec"]) >= 30
    assert service["RestartPreventExitStatus"] == "2"
    if service["Type"] != "oneshot":
        assert service["KillSignal"] == "SIGTERM"
        assert service["ExecReload"].split() == ["/bin/kill", "-HUP", "$MAINPID"]
    if "tail-crm.sh" in service["ExecStart"]:
        assert service["KillMode"] == "mixed"  # the script alone is told, not the target


@pytest.mark.parametrize("name", ["shop.service", "crm.service"])
def test_the_commands_of_a_unit_run(name, shop, tmp_path, monkeypatch):
    folder, _port = shop
    (tmp_path / "secrets.json").write_text('{"tail_max_rounds": 1}')
    for variable in ("STATE_DIRECTORY", "CREDENTIALS_DIRECTORY"):
        monkeypatch.setenv(variable, str(tmp_path))
    service = _unit(UNITS[name])["Service"]
    done = _run(folder, service["ExecStart"])
    assert done.returncode == 0, done.stderr
    assert _keeps_the_state(tmp_path / "lake")


# ---- Kubernetes, and schedules of CI services ----------------------------------------------------------


def _pod(workload: dict[str, Any]) -> dict[str, Any]:
    spec = workload["spec"]
    pod: dict[str, Any] = spec.get("jobTemplate", {}).get("spec", spec)["template"]["spec"]
    return pod


WORKLOADS = [
    thing
    for name, text in saved("kubernetes.md").items()
    if name.endswith(".yaml")
    for thing in yaml.safe_load_all(text)
    if thing["kind"] in ("CronJob", "StatefulSet")
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload["kind"])
def test_a_manifest_has_one_writer_that_gets_time_to_end(workload, shop, tmp_path):
    """Its schema was looked at with kubernetes-validate; here its parts fit together, and its command runs."""
    pod = _pod(workload)
    assert pod["terminationGracePeriodSeconds"] >= 30
    if workload["kind"] == "CronJob":
        assert workload["spec"]["concurrencyPolicy"] == "Forbid"
        codes = workload["spec"]["jobTemplate"]["spec"]["podFailurePolicy"]["rules"][0]
        assert (codes["action"], codes["onExitCodes"]["values"]) == ("FailJob", [2])
    else:
        assert workload["spec"]["replicas"] == 1
    (container,) = pod["containers"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    volumes |= {claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", [])}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    folder, _port = shop
    (tmp_path / "secrets.json").write_text('{"tail_max_rounds": 1}')
    words = " ".join(container["args"]).replace("=/tmp/", f"={tmp_path}/")
    words = words.replace("/etc/tap", str(folder)).replace("/run/secrets/tap", str(tmp_path))
    words = re.sub(r"=(lake:)?(report\.json|lake)\b(?!:)", rf"=\1{tmp_path}/\2", words)
    done = _run(folder, f"env/bin/burler run tap_shop.py {words}")
    assert done.returncode == 0, done.stderr
    assert _keeps_the_state(tmp_path / "lake")
    if workload["kind"] == "StatefulSet":
        probe = container["livenessProbe"]["exec"]["command"]
        alive = [word.replace("/tmp/", f"{tmp_path}/") for word in probe]
        assert subprocess.run(alive, check=False).returncode == 0
        os.utime(tmp_path / "tap.prom", (0, 0))
        assert subprocess.run(alive, check=False).returncode != 0


def test_the_jobs_of_ci_services_run_the_tap_with_options_that_are_there(shop, tmp_path):
    folder, port = shop
    github, gitlab = (yaml.safe_load(block) for block in fenced("cron.md", "yaml"))
    assert github["concurrency"]["cancel-in-progress"] is False and gitlab["shop"]["resource_group"]
    commands = [step["run"] for step in github["jobs"]["run"]["steps"] if "run" in step]
    lines = [line for line in (*commands, *gitlab["shop"]["script"]) if line.startswith("burler run")]
    assert len(lines) == 2 and lines[0] == lines[1]
    line = lines[0].replace("s3://bucket/lake", f"{tmp_path}/lake")
    line = line.replace("report.html", f"{tmp_path}/report.html")
    done = _run(folder, line, TAP_SHOP_URL=f"http://127.0.0.1:{port}")
    assert done.returncode == 0, done.stderr
    assert _keeps_the_state(tmp_path / "lake")
    assert (tmp_path / "report.html").exists()


# ---- Airflow ---------------------------------------------------------------------------------------


def test_the_files_for_airflow_are_python_and_know_the_codes():
    """They were run in Airflow 3.3; here they parse, and name the script's codes."""
    files = saved("airflow.md")
    assert set(files) == {"shop_dag.py", "tap_operator.py"}
    for name, text in files.items():
        ast.parse(text, name)
    assert "skip_on_exit_code=75" in files["shop_dag.py"] and "catchup=False" in files["shop_dag.py"]
    assert re.findall(r"code == (\d+)", files["tap_operator.py"]) == ["2", "75"]
    assert "exit 75" in saved("operations.md")["nightly.sh"]


def test_two_at_once_are_one(tmp_path: Path):
    """The lock of docs/operations.md, held by a run that takes its time."""
    (tmp_path / "nightly.sh").write_text(saved("operations.md")["nightly.sh"])
    slow = tmp_path / "env" / "bin" / "burler"
    slow.parent.mkdir(parents=True)
    slow.write_text("#!/bin/sh\ntouch begun\nwhile [ ! -e go ]; do sleep 0.05; done\n")
    slow.chmod(0o755)
    with subprocess.Popen(["bash", "nightly.sh"], cwd=tmp_path) as first:
        while not (tmp_path / "begun").exists():
            assert first.poll() is None
            time.sleep(0.02)
        second = subprocess.run(["bash", "nightly.sh"], cwd=tmp_path, timeout=20, capture_output=True, check=False)
        (tmp_path / "go").touch()
    assert (first.returncode, second.returncode) == (0, 75)
    assert second.stderr == b"nightly.sh: another run is not done yet\n"


def test_what_a_scheduler_does_with_an_exit_code():
    """docs/operations.md: only what a person must mend is not tried again; the other pages hold to it."""
    page = (DOCS / "operations.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d, ]+) \| (\w*).* \|", page.split("## What the exit code asks")[1], re.MULTILINE)
    again = {int(code): word for codes, word in rows for code in codes.split(", ")}
    ours = {one.exit_code for one in vars(errors).values() if isinstance(one, type) and issubclass(one, BurlerError)}
    assert ours == {1, 2, 3, 4} <= set(again)
    assert {code for code, word in again.items() if word == "no"} == {UsageError.exit_code, 75}
    assert {code for code, word in again.items() if word in ("yes", "after")} == {1, 3, 4, 124, 130, 137, 143}
    assert f"RestartPreventExitStatus={UsageError.exit_code}" in (DOCS / "systemd.md").read_text(encoding="utf-8")
