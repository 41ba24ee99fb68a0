"""Where the stream `commits` has got to, kept in `stream.state`.

What is new is decided by reachability: commits that the tips now reach and those of the last run did not.
So commits that share a second, and branches that are merged late, are neither lost nor repeated.
"""

import copy

from .gitrepo import Frontier


class Position:
    """Reads and moves on the state of one run.

    The state: `tips`, the commits that stand for all that is out (sha -> one ref that points there; null for
    a commit inside the history, while a run is under way); `shallow`, the boundary of a shallow clone, behind which
    nothing was there to read. Whether it is true of `file_changes` as well is burler's to know: where it is not,
    `stream.state` is empty, and all history comes again.
    """

    def __init__(self, stream, repo, saved):
        state = stream.state
        if not state:
            state.update(_of_version_1_0(stream, saved))
        state.pop("streams", None)
        boundary = repo.shallow()
        before = state.get("shallow", [])
        self._state = state
        self._boundary = boundary
        self._ends = repo.tips()
        self.tips = sorted(set(self._ends.values()))
        self.known = list(state.get("tips", {}))
        self.reopen = sorted(set(before) - set(boundary))
        state["shallow"] = sorted({*before, *boundary})
        self._frontier = Frontier(state.setdefault("tips", {}))

    def passed(self, commit):
        """The commit, and everything before it, is out."""
        self._frontier.add(commit["sha"], commit["parents"])

    def finish(self):
        """All that the tips reach is out."""
        self._state["tips"] = {sha: ref for ref, sha in sorted(self._ends.items())}
        self._state["shallow"] = self._boundary


def _of_version_1_0(stream, saved):
    """The position in a state of tap-git 1.0, if it is true of all streams that are wanted now; else {}.

    One function gave both streams then, and the position itself said in `streams` which ones it was true of.
    """
    position = saved.get("bookmarks", {}).get("commits", {}).get("stream_state", {})
    wanted = {name for name in ("commits", "file_changes") if stream.selected(name)}
    return copy.deepcopy(position) if wanted <= set(position.get("streams", ())) else {}
