"""A config that is checked costs no import of requests, which old versions of jsonschema ask for."""

import subprocess
import sys

import pytest

CHECK = """
import sys, burler
from burler.config import check_config
{before}
check_config({{"type": "object", "properties": {{"a": {{"type": "string"}}}}}}, {{}}, tap_name="tap-x")
print("jsonschema" in sys.modules, "requests" in sys.modules)
import requests
print(requests.__name__, len([one for one in sys.meta_path if type(one).__module__.startswith("burler")]))
"""


@pytest.mark.parametrize(("before", "there"), [("", "False"), ("import requests", "True")])
def test_a_schema_is_compiled_without_requests(before, there):
    code = CHECK.format(before=before)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"True {there}", "requests 0"]
