"""The commands of the README, as they stand there."""

import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

import tap_clicks
from tap_clicks import ids

FOLDER = Path(tap_clicks.__file__).parent
ROOT = FOLDER.parents[1]


def commands():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    return [line[4:] for line in text.splitlines() if line.startswith("    ")]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def read(path):
    """(ids of clicks, last STATE) of a file whose last line may be torn."""
    lines = path.read_bytes()
    messages = [json.loads(line) for line in lines[: lines.rfind(b"\n") + 1].splitlines()]
    came = [m["record"]["entry_id"] for m in messages if m["type"] == "RECORD" and m["stream"] == "clicks"]
    return came, next((m["value"] for m in reversed(messages) if m["type"] == "STATE"), None)


def test_the_commands_of_the_readme_do_what_it_says(tmp_path, make_shop, path_with_commands, wait):
    make_shop()  # skips where there is no Redis
    import redis

    serve, follow, killed, go_on = commands()
    port = free_port()
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = {
        "PATH": path_with_commands,
        "PYTHONPATH": str(ROOT),
        "TAP_CLICKS_URL": f"redis://127.0.0.1:{port}/0",  # that of the sample config may be taken
    }
    running = []

    def shell(command):
        """Without a shell between: signals go to the command itself."""
        running.append(
            subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=tmp_path, env=environment, start_new_session=True)
        )
        return running[-1]

    try:
        server = shell(serve.removesuffix(" &") + f" --port {port} --clicks-per-second 100")
        client = redis.Redis(port=port, protocol=2, decode_responses=True)

        def answers():
            try:
                return client.xlen("clicks") > 3
            except redis.exceptions.ConnectionError:
                return False

        wait(answers, "the server has clicks")
        following = shell(follow)
        followed = tmp_path / "clicks.jsonl"
        wait(lambda: followed.exists() and len(read(followed)[0]) > 10, "clicks come")
        following.send_signal(signal.SIGINT)
        assert following.wait(30) == 0
        came, state = read(followed)
        assert came == [one for one, _ in client.xrange("clicks", max=came[-1])] and state == json.loads(
            (tmp_path / "state.json").read_text()
        )
        pending = [one["message_id"] for one in client.xpending_range("clicks", "tap-clicks", "-", "+", 1000)]
        assert not set(pending) & set(came)  # a page that it was told to stop at may be pending, and comes again

        # Killed when it has done something, not after a time that a busy machine may need to start.
        assert killed.startswith("timeout -s KILL 5 burler run ")
        followed.unlink()
        to_kill = shell(killed.removeprefix("timeout -s KILL 5 "))
        wait(lambda: followed.exists() and read(followed)[1] and len(read(followed)[0]) > 30, "clicks and a STATE come")
        to_kill.kill()
        assert to_kill.wait(30) == -signal.SIGKILL
        before, _ = read(followed)
        begins = json.loads((tmp_path / "state.json").read_text())["bookmarks"]["clicks"]["bookmark"]
        at = [ids.sortable(one) for one in before].index(begins)  # it covers nothing that is not there
        assert shell(go_on.replace("--tail-max-seconds 5", "--tail-max-seconds 2")).wait(30) == 0
        both, _ = read(followed)
        assert set(both) == {one for one, _ in client.xrange("clicks", max=both[-1])}
        assert not set(both[len(before) :]) & set(both[: at + 1])  # it goes on at the STATE
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0
        with pytest.raises(redis.exceptions.ConnectionError):
            client.ping()
    finally:
        for one in running:
            if one.poll() is None:
                os.killpg(one.pid, signal.SIGKILL)
                one.wait()


def test_the_sample_config_names_what_the_server_has():
    assert json.loads((FOLDER / "config.sample.json").read_text())["url"] == "redis://127.0.0.1:8770/0"
