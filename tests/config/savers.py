"""Processes that save a config, for test_writeback.py; run as a script, so that they fork without threads."""

from __future__ import annotations

import json
import os
import random
import signal
import stat
import sys
import time
from pathlib import Path

from burler.config import ConfigFiles, load


def count(path, key, times):
    """Save a rising number under a key; nobody else may set it back meanwhile."""
    loaded = load([path], environment={}, tap_name="tap-x")
    config = dict(loaded.config)
    files = ConfigFiles(loaded, config)
    for i in range(1, times + 1):
        config[key] = i
        assert files.save_if_changed(config)
        time.sleep(random.uniform(0, 0.0005))
        assert json.loads(Path(path).read_bytes())[key] == i, "another process undid what was saved"


def nobody(path, folder_mode, file_mode):
    """Save as a user without rights, in a folder and file of its own with these modes; prints what came of it."""
    os.chown(path, 65534, 65534)
    os.chown(path.parent, 65534, 65534)
    path.chmod(file_mode)
    path.parent.chmod(folder_mode)
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    loaded = load([path], environment={}, tap_name="tap-x")
    print(ConfigFiles(loaded, loaded.config).save_if_changed({"a": 2}))


def storm(path, rounds, seed):
    """Kill a tap that saves all the time, at random moments; the file is whole every time."""
    dice = random.Random(seed)
    path.write_text(json.dumps({"token": 0, "kept": "x" * 20_000}))
    path.chmod(0o600)
    last = 0
    for _ in range(rounds):
        child = os.fork()
        if child == 0:
            count(path, "token", 1_000_000)
        time.sleep(dice.uniform(0, 0.05))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        now = json.loads(path.read_bytes())
        assert now["kept"] == "x" * 20_000 and set(now) == {"token", "kept"}
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        last = max(last, now["token"])
    assert last > 0, "no round got as far as saving once"


if __name__ == "__main__":
    what, path, *rest = sys.argv[1:]
    if what == "count":
        count(Path(path), rest[0], int(rest[1]))
    elif what == "storm":
        storm(Path(path), int(rest[0]), int(rest[1]))
    else:
        nobody(Path(path), int(rest[0], 8), int(rest[1], 8))
