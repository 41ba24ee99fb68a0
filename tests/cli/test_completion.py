"""What shells complete: in the shells themselves, as far as they are here."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tapprocess import SMALL, write_tap

from support.cli import burler, environment

SCRIPT = SMALL + "\nif __name__ == '__main__':\n    tap.cli()\n"
BIN = str(Path(sys.executable).parent)
BASH = """
source {script}
COMP_WORDS=({words})
COMP_CWORD={at}
compopt() {{ printf 'shell: %s\\n' "$2"; }}
{function} {command}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path) -> None:
    write_tap(tmp_path, SCRIPT)
    catalog = {"streams": [{"tap_stream_id": name} for name in ("orders", "order_lines", "people")]}
    (tmp_path / "catalog.json").write_text(json.dumps(catalog))
    hostile = {"streams": [{"tap_stream_id": name} for name in ("fine", "$(touch ran)", "a b", "*", "x;ls", "`id`")]}
    (tmp_path / "hostile.json").write_text(json.dumps(hostile))
    os.mkfifo(tmp_path / "pipe.json")  # nobody writes into it
    for stream in ("orders", "people", "a%20b"):
        (tmp_path / "lake" / "raw" / "tap-crm" / stream).mkdir(parents=True)


def completed(folder: Path, *words: str, command: str = "burler", script: str | None = None) -> list[str]:
    """What bash offers for the last word."""
    written = folder / f"complete-{command}.bash"
    written.write_bytes(burler("completion", "bash", command, cwd=folder).stdout)
    quoted = " ".join(f"'{word}'" for word in (command, *words))
    name = command.replace("-", "_")
    text = BASH.format(
        script=written, words=quoted, at=len(words), function=f"_{name}_completion", command=script or command
    )
    env = {**environment(), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", text], cwd=folder, env=env, capture_output=True, text=True, check=True
    )
    assert "Traceback" not in done.stderr, done.stderr
    return [line for line in done.stdout.splitlines() if line]


def offered(folder: Path, *words: str) -> list[str]:
    """What burler says to the script of bash: kinds and values."""
    given = {"COMP_WORDS": shlex.join(["burler", *words]), "COMP_CWORD": str(len(words))}
    ended = burler(cwd=folder, **given, _BURLER_COMPLETE="bash_complete")
    assert (ended.code, ended.stderr) == (0, "")
    return ended.text.split()


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["ex"], ["export", "extract"]),
        (["lake", "co"], ["compact"]),
        (["run", "x.py", "--tail-max-r"], ["--tail-max-retries", "--tail-max-rounds"]),
        (["export", "l", "o", "--mode", ""], ["append", "upsert"]),
        (["export", "l", "o", "--format", "i"], ["iceberg"]),
        (["run", "x.py", "--config", ""], ["file,"]),
        (["run", ""], ["file,"]),
        (["run", "x.py", "--sink", "l"], ["lake:"]),
        (["run", "x.py", "--catalog", "catalog.json", "--select", "o"], ["orders", "order_lines"]),
        (
            ["run", "x.py", "--catalog", "catalog.json", "--select", "a,ord"],
            ["a,orders", "a,order_lines"],
        ),
        (["run", "x.py", "--catalog", "nosuch.json", "--select", ""], []),
        (["lake", "read", "lake", "--stream", ""], ["orders", "people"]),
        (["run", "x.py", "--catalog", "hostile.json", "--select", ""], ["fine"]),
        (["run", "x.py", "--catalog", "pipe.json", "--select", ""], []),
        (["lake", "check", "lake", "--tap", ""], ["tap-crm"]),
        (["verify", "x.py", "--select", "C10"], [f"C10{n}" for n in range(1, 10)]),
        (["completion", ""], ["bash", "zsh", "fish"]),
    ],
)
def test_what_is_offered(tmp_path: Path, words: list[str], values: list[str]):
    assert offered(tmp_path, *words) == [value if value == "file," else f"plain,{value}" for value in values]


def test_bash_offers_it(tmp_path: Path):
    assert completed(tmp_path, "lake", "co") == ["compact"]
    assert completed(tmp_path, "lake", "check", "l") == ["shell: dirnames"]
    assert completed(tmp_path, "run", "x.py", "--catalog", "hostile.json", "--select", "") == ["fine"]


def test_no_tap_runs_for_it(tmp_path: Path):
    write_tap(tmp_path, "from pathlib import Path\nPath('ran').touch()\n" + SCRIPT, "tap_loud.py")
    offered(tmp_path, "run", "tap_loud.py", "--select", "")
    assert not (tmp_path / "ran").exists()


def test_a_taps_own_script_knows_its_streams(tmp_path: Path):
    script = tmp_path / "tap-small"
    script.write_text(f"#!{sys.executable}\n{SCRIPT}")
    script.chmod(0o755)
    assert completed(tmp_path, "--select", "r", command="tap-small", script=str(script)) == ["rows"]
    assert completed(tmp_path, "--disc", command="tap-small", script=str(script)) == ["--discover"]
    assert completed(tmp_path, "--test", "", command="tap-small", script=str(script)) == ["records", "schema"]


def test_a_name_that_is_none_is_refused(tmp_path: Path):
    ended = burler("completion", "bash", "a;b", cwd=tmp_path)
    assert (ended.code, ended.stdout) == (2, b"")
    assert "no name of a command" in ended.one_critical()
    assert "Did you mean 'bash'" in burler("completion", "bsh", cwd=tmp_path).one_critical()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_right_for_its_shell(tmp_path: Path, shell: str):
    """The shell itself reads it, and knows a function or rule of it afterwards."""
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here: apt-get install {shell}")
    ended = burler("completion", shell, cwd=tmp_path)
    (tmp_path / "script").write_bytes(ended.stdout)
    asks = {
        "bash": "source ./script; complete -p burler",
        "zsh": "autoload -U compinit; compinit -u -d ./dump; source ./script; print $_comps[burler]",
        "fish": "source ./script; complete -C 'burler lake co'",
    }
    env = {**environment(), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}
    quick = {"bash": ["--noprofile", "--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    line = [shell, *quick, "-c", asks[shell]]
    done = subprocess.run(line, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {"bash": "_burler_completion burler", "zsh": "_burler_completion", "fish": "compact"}[shell] in done.stdout


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_answers_to_the_other_shells(tmp_path: Path, shell: str):
    """By the protocol of their scripts, which pass words in the environment."""
    env = {"COMP_WORDS": "burler lake co", "COMP_CWORD": "2" if shell == "zsh" else "co"}
    ended = burler(cwd=tmp_path, **env, _BURLER_COMPLETE=f"{shell}_complete")
    text = ended.stdout.decode()
    assert "compact" in text and "check" not in text
    assert (ended.code, ended.stderr) == (0, "")


def test_an_option_that_takes_a_file_says_so(docs_pages: dict[str, str], tmp_path: Path):
    """Of every command, as its page lists them."""
    asked = 0
    for page, text in docs_pages.items():
        if page.startswith("reference/cli/") and not page.endswith(("index.md", "tap-crm.md")):
            words = text.partition("\n")[0].split()[2:]
            for option in re.findall(r"^\| `(?:-\w, )?(--[a-z-]+) FILE`", text, re.MULTILINE):
                assert offered(tmp_path, *words, option, "") == ["file,"], (words, option)
                asked += 1
    assert asked > 10
