"""Rules of area H: what a tap asks its source. Those about lists stand in ``rules_requests_pages``.

In the examples ``client`` is a ``requests.Session``.
"""

from __future__ import annotations

from burler.spec.rule import Rule
from burler.spec.rules_requests_pages import REQUEST_PAGE_RULES

_COSTS = (
    Rule(
        code="H701",
        name="request-without-timeout",
        severity="error",
        title="A request waits for ever if the source does not answer.",
        what=(
            "Every request is looked at on its way out: one without a timeout, or with none for reading, is reported."
        ),
        why=(
            "Connections die without a word (a firewall forgets them, a server is restarted). A tap that waits on one "
            "hangs until somebody ends it, and a scheduler that waits for the tap starts no further run."
        ),
        mend=(
            "Say timeout= with each request: a minute is usual. requests has none by default; burler.http.Client has "
            "(10, 60) seconds, httpx 5."
        ),
        breaks='def contacts(client):\n    yield from client.get(f"{BASE_URL}/contacts").json()\n',
        keeps='def contacts(client):\n    yield from client.get(f"{BASE_URL}/contacts", timeout=60).json()\n',
    ),
    Rule(
        code="H702",
        name="repeated-request",
        severity="warning",
        title="The same request is sent again although it was answered.",
        what=(
            "Two requests of a stream are the same if method, address, parameters in any order, headers and body are. "
            "To ask again after 429, 5xx or a lost reply is no repetition, nor is it to wait for a job with pauses, "
            "and streams that tail may ask as often as they like."
        ),
        why=(
            "A repeated request costs time and counts against the source's limits. Often it is a sign of a mistake "
            "that costs more: a page that is read twice has its rows twice, a cursor that stays where it is goes round "
            "in a circle."
        ),
        mend=(
            "Keep what was answered (functools.cache, a dict on the client), ask for it before the loop, or look at "
            "why the parameters did not change."
        ),
        breaks=(
            "def contacts(client):\n"
            '    for row in client.get(f"{BASE_URL}/contacts", timeout=60).json():\n'
            '        labels = client.get(f"{BASE_URL}/labels", timeout=60).json()\n'
            '        yield {**row, "label": labels[row["label_id"]]}\n'
        ),
        keeps=(
            "def contacts(client):\n"
            '    labels = client.get(f"{BASE_URL}/labels", timeout=60).json()\n'
            '    for row in client.get(f"{BASE_URL}/contacts", timeout=60).json():\n'
            '        yield {**row, "label": labels[row["label_id"]]}\n'
        ),
    ),
    Rule(
        code="H703",
        name="requests-per-row",
        severity="warning",
        title="A stream asks for its rows one by one.",
        what=(
            "The requests of a stream that were answered well, divided by its rows: more than `requests-per-row` (0.5) "
            "is reported once there were `requests-counted` (20). Runs without a row say nothing."
        ),
        why=(
            "A list of 100,000 rows with a request for each takes hours where the list itself takes minutes, and uses "
            "up the limits of the source that other programs need, too."
        ),
        mend=(
            "Look for a parameter that puts the details into the list (expand, include, fields), a search that takes "
            "many ids, a greater page, or a bulk export. Where the source has none of these, ignore the rule for this "
            "stream."
        ),
        breaks=(
            "def contacts(client):\n"
            "    for number in range(30):\n"
            '        yield client.get(f"{BASE_URL}/contacts/{number}", timeout=60).json()\n'
        ),
        keeps=(
            "def contacts(client):\n"
            "    for page in (1, 2, 3):\n"
            '        params = {"page": page, "expand": "details"}\n'
            '        yield from client.get(f"{BASE_URL}/contacts", params=params, timeout=60).json()\n'
        ),
    ),
)

_FAILURES = (
    Rule(
        code="H706",
        name="error-ignored",
        severity="error",
        title="A request failed, nobody asked again, and the stream ended as if nothing had been there.",
        what=(
            "A request that was answered with 5xx, 401, 408 or 429, or not at all, or whose body broke off, is "
            "reported if it was not answered well later on and the stream ended without an error."
        ),
        why=(
            "The rows behind it are missing, the bookmark goes past them, and no later run reads them: nobody gets to "
            "know. Sources fail for a moment every day."
        ),
        mend=(
            "Ask again with growing pauses, and raise an error when that does not help: reply.raise_for_status(). "
            "burler.http.Client does both."
        ),
        breaks=(
            "def contacts(client):\n"
            "    for page in (1, 2, 3):\n"
            '        reply = client.get(f"{BASE_URL}/flaky", params={"page": page}, timeout=60)\n'
            "        if reply.ok:\n"
            "            yield from reply.json()\n"
        ),
        keeps=(
            "def contacts(client):\n"
            "    for page in (1, 2, 3):\n"
            "        for attempt in range(5):\n"
            '            reply = client.get(f"{BASE_URL}/flaky", params={"page": page}, timeout=60)\n'
            "            if reply.ok:\n"
            "                break\n"
            "            time.sleep(2**attempt)\n"
            "        reply.raise_for_status()\n"
            "        yield from reply.json()\n"
        ),
    ),
    Rule(
        code="H710",
        name="refusal-ignored",
        severity="warning",
        title="The source refused a request, and the stream ended as if nothing had been there.",
        what=(
            "A request that was answered with 4xx (400, 403, 422, ...) and not answered well later on is reported if "
            "the stream ended without an error. 404 and 410 are not: what is gone has no rows. Nor is an error for the "
            "page behind the last one."
        ),
        why=(
            "A right that is missing, or a parameter that the source has given up, looks like an empty table: targets "
            "may delete what they have, and people trust the figures."
        ),
        mend=(
            "Raise an error that names the right that is missing. If a part may really be missing (an edition without "
            "this object), say so in the log, and ignore the rule for this stream."
        ),
        breaks=(
            "def contacts(client):\n"
            '    reply = client.get(f"{BASE_URL}/forbidden", timeout=60)\n'
            "    yield from reply.json() if reply.ok else []\n"
        ),
        keeps=(
            "def contacts(client):\n"
            '    reply = client.get(f"{BASE_URL}/contacts", timeout=60)\n'
            "    reply.raise_for_status()\n"
            "    yield from reply.json()\n"
        ),
    ),
    Rule(
        code="H711",
        name="retry-after-ignored",
        severity="warning",
        title="The source said when to ask again, and was asked sooner.",
        what=(
            "A reply 429 or 503 with Retry-After names a time. The same request, sent again before a tenth of it is "
            "left, is reported."
        ),
        why=(
            "Sources answer such requests with longer pauses, and with a lock for the account in the end. All tries "
            "are used up before the source has recovered."
        ),
        mend="Sleep as long as Retry-After says (seconds, or a date). burler.http.Client does, for all its threads.",
        breaks=(
            "def contacts(client):\n"
            '    reply = client.get(f"{BASE_URL}/busy", timeout=60)\n'
            "    while reply.status_code == 429:\n"
            '        reply = client.get(f"{BASE_URL}/busy", timeout=60)\n'
            "    yield from reply.json()\n"
        ),
        keeps=(
            "def contacts(client):\n"
            '    reply = client.get(f"{BASE_URL}/busy", timeout=60)\n'
            "    while reply.status_code == 429:\n"
            '        time.sleep(int(reply.headers["Retry-After"]))\n'
            '        reply = client.get(f"{BASE_URL}/busy", timeout=60)\n'
            "    yield from reply.json()\n"
        ),
    ),
)

_SAFETY = (
    Rule(
        code="H707",
        name="http-plain",
        severity="info",
        title="Credentials go over the network where everybody can read them.",
        what=(
            "A request to an http:// address that is not this machine, with an Authorization header, a header or a "
            "parameter with a name of credentials (X-Api-Key, access_token), or a user in its URL. Values are never "
            "shown."
        ),
        why="Who listens on the way has the account. That a network is one's own is what most of those think.",
        mend="Use https://, and refuse a base URL of the config that begins with http://.",
        breaks=(
            "def contacts(client):\n"
            '    headers = {"Authorization": "Bearer abc"}\n'
            '    yield from client.get("http://api.example.com/contacts", headers=headers, timeout=60).json()\n'
        ),
        keeps=(
            "def contacts(client):\n"
            '    headers = {"Authorization": "Bearer abc"}\n'
            '    yield from client.get("https://api.example.com/contacts", headers=headers, timeout=60).json()\n'
        ),
    ),
    Rule(
        code="H712",
        name="certificate-unchecked",
        severity="warning",
        title="Nobody looks at the certificate of the source.",
        what=(
            "An https:// request of a requests.Session or a burler.http.Client to another machine, sent with "
            "verify=False. Clients of httpx do not show it."
        ),
        why="Anybody on the way can answer in place of the source, take the credentials, and change the rows.",
        mend=(
            "Leave verify=False out. For a certificate of one's own authority give its file: "
            'verify="authority.pem", or the variable REQUESTS_CA_BUNDLE.'
        ),
        breaks=(
            "def contacts(client):\n"
            '    yield from client.get("https://api.example.com/contacts", verify=False, timeout=60).json()\n'
        ),
        keeps=(
            'def contacts(client):\n    yield from client.get("https://api.example.com/contacts", timeout=60).json()\n'
        ),
    ),
)

REQUEST_RULES: tuple[Rule, ...] = tuple(
    sorted((*_COSTS, *_FAILURES, *_SAFETY, *REQUEST_PAGE_RULES), key=lambda rule: rule.code)
)
