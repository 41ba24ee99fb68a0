"""Where the stream `commits` has got to, kept in `stream.state`.

What is new is decided by reachability: commits that the tips now reach and those of the last run did not.
So commits that share a second, and branches that are merged late, are neither lost nor repeated.
"""

from .gitrepo import Frontier


class Position:
    """Reads and moves on the state of one run.

    The state: `tips`, the commits that stand for all that is out (sha -> one ref that points there; null for
    a commit inside the history, while a run is under way); `streams`, those that this is true of; `shallow`, the
    boundary of a shallow clone, behind which nothing was there to read.
    """

    def __init__(self, stream, repo):
        wanted = [name for name in ("commits", "file_changes") if stream.selected(name)]
        state = stream.state
        if not set(wanted) <= set(state.get("streams", wanted)):
            state.clear()  # a stream was selected anew: its past has never been read
        boundary = repo.shallow()
        before = state.get("shallow", [])
        self._state = state
        self._boundary = boundary
        self._ends = repo.tips()
        self.tips = sorted(set(self._ends.values()))
        self.known = list(state.get("tips", {}))
        self.reopen = sorted(set(before) - set(boundary))
        state["streams"] = wanted
        state["shallow"] = sorted({*before, *boundary})
        self._frontier = Frontier(state.setdefault("tips", {}))

    def passed(self, commit):
        """The commit, and everything before it, is out."""
        self._frontier.add(commit["sha"], commit["parents"])

    def finish(self):
        """All that the tips reach is out."""
        self._state["tips"] = {sha: ref for ref, sha in sorted(self._ends.items())}
        self._state["shallow"] = self._boundary
