# make demo   a real tap on this repository's own history: messages, lake, tables, an answer from Spark
# make test   everything that tests need, then all tests
# make test-jsonschema2  the tests beside jsonschema 2.6, which singer-python pins
# make test-extras  burler's wheel in fresh environments: with no extra, with each alone; downloads all of them
# make dist   the wheel and the sdist in dist/, checked
# make nightly  the tests, examples of properties and short storms that each push leaves out (an hour or two)
# make storm  thousands of runs that signals and kills meet at random moments (hours)
# make mutations  breaks burler in one place at a time, and says whether its tests notice (tests/mutations.toml)
# make soak   a tail of an hour: memory, open files, threads, each row once
# make bench  how fast burler is, beside a floor and other programs; make bench BEFORE=<commit>: beside itself; make bench-spark: tables, sources and extraction
#
# They make a virtual environment in .venv and install what they need; nothing else has to be done before.
# Tests run on two processes more than there are cores (they wait for servers and JVMs), four at most, a file at a time (those that share a Spark in one): make test ARGS="-n 0 -k lake" runs some, in one.
# REPO=/path/to/repo make demo   reads another git repository.      PYTHON=python3.12 make ...   chooses Python.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV ?= .venv
RUN = $(VENV)/bin/python
REPO ?= .
# A Java 17 or newer on PATH or in JAVA_HOME is used; without one the extra 'java' brings its own.
JAVA := $(shell sh examples/have_java.sh && echo yes || echo no)
JAVA_EXTRA = $(if $(filter yes,$(JAVA)),,$(comma)java)
comma := ,
WORKERS = $(shell $(RUN) -c 'import os; print(min(4, (os.cpu_count() or 1) + 2))')
PIP = $(RUN) -m pip --disable-pip-version-check install

.PHONY: demo test test-jsonschema2 test-extras dist storm nightly mutations soak bench bench-spark check lint types docs docs-check clean
.DELETE_ON_ERROR:

# A Python that is there but can't make environments (Debian without python3-venv) is caught by the line's end.
$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "burler needs Python 3.11 or newer; none was found. Install one, or name it: PYTHON=/path/to/python3.12 make demo"; exit 2; }
	@echo "== making a virtual environment in $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "Python's venv module does not work here. On Debian: apt-get install python3-venv"; exit 2; }

$(VENV)/.for-demo: pyproject.toml | $(VENV)/bin/python
	@echo "== installing burler and Spark (once; some 500 MB are downloaded)"
	$(PIP) -e '.[lake,docs-site,spark$(JAVA_EXTRA)]'
	@touch $@

# What is imported is compiled when it is: a fifth less time for the installation.
$(VENV)/.for-test: pyproject.toml | $(VENV)/bin/python
	@echo "== installing burler, Spark and what tests need (once; some 600 MB are downloaded)"
	$(PIP) --no-compile -e '.[lake,spark,java,test]'
	$(PIP) -q --no-deps 'singer-python>=6.8'
	@touch $@

$(VENV)/.for-check: pyproject.toml | $(VENV)/bin/python
	$(PIP) --no-compile -e '.[lake,spark,java,dev]'
	$(PIP) -q --no-deps 'singer-python>=6.8'
	@touch $(VENV)/.for-test $@

demo: $(VENV)/.for-demo
	@$(RUN) examples/demo.py "$(REPO)"

test: $(VENV)/.for-test
	@$(RUN) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

# The tests' environment has jsonschema 4, as users have; taps on singer-python bring 2.6. It lies in a folder of its
# own here, found first. All tests but those of programs of others, which bring their own jsonschema.
WITH_2 = $(VENV)/jsonschema2
$(WITH_2): $(VENV)/.for-test
	@echo "== jsonschema 2.6 in $(WITH_2)"
	@$(PIP) -q --no-warn-conflicts --target $(WITH_2) 'jsonschema<3'
	@touch $(WITH_2)

test-jsonschema2: $(WITH_2)
	@PYTHONPATH=$(abspath $(WITH_2)) $(RUN) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
		--ignore tests/peers --ignore tests/spark $(ARGS)

# The tools have an environment of their own: what they need has nothing to do with the tests'. uv is quick at
# environments and keeps what it has downloaded.
.venv-dist/bin/twine: | $(VENV)/bin/python
	@$(RUN) -m venv .venv-dist
	@.venv-dist/bin/python -m pip --disable-pip-version-check install -q build twine uv

test-extras: $(VENV)/.for-test .venv-dist/bin/twine
	@PYTHONPATH="$(abspath tests)" PATH="$(abspath .venv-dist)/bin:$$PATH" $(RUN) tests/packaging/extras.py $(ARGS)

dist: .venv-dist/bin/twine
	rm -rf dist
	.venv-dist/bin/python -m build -o dist .
	.venv-dist/bin/twine check --strict dist/*

# These run without pytest, which finds tests/support by itself.
storm nightly soak bench bench-spark: export PYTHONPATH := $(abspath tests)

# RUNS=10 make storm: so many stories of each kind; SECONDS_=60: of each lake.
STORM = $(RUN) -m storm
storm: $(VENV)/.for-test
	for kind in signals kill; do $(STORM) run --only $$kind $(if $(RUNS),--runs $(RUNS)) || exit 1; done
	for kind in signals kill crash; do $(STORM) tail --only $$kind $(if $(RUNS),--runs $(RUNS)) || exit 1; done
	$(STORM) batch $(if $(RUNS),--runs $(RUNS))
	$(STORM) batch --s3 --runs $(or $(RUNS),30)
	$(STORM) lake --seconds $(or $(SECONDS_),300)
	$(STORM) lake --s3 --seconds $(or $(SECONDS_),300)
	for on in "" --s3; do $(STORM) lake --only states $$on $(if $(RUNS),--runs $(RUNS)) || exit 1; done
	$(STORM) spark $(if $(RUNS),--runs $(RUNS))

# What a push leaves out because of its time: see tests/conftest.py for the profiles of hypothesis.
PROPERTIES = $$(grep -rlE '^(from|import) hypothesis' tests examples --include='test_*.py')
NIGHTLY = $(RUN) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
nightly: $(VENV)/.for-test
	@echo "== make nightly holds what is too long for each push; an hour or two on 2 cores:"
	@echo "==   1. the tests marked nightly (make test runs all others)"
	@echo "==   2. each property with 600 examples, others each night (a push looks at the same 60)"
	@echo "==   3. half a minute of storm in each world (make storm is the whole of it)"
	@failed=0; $(NIGHTLY) -m nightly $(ARGS) || failed=1; \
	$(NIGHTLY) --hypothesis-profile=nightly $(ARGS) $(PROPERTIES) || failed=1; \
	for world in run tail batch "batch --s3" lake "lake --s3" "run --kill" "tail --kill" "tail --only crash"; do \
		$(STORM) $$world --seconds 30 || failed=1; done; \
	$(STORM) spark --runs 1 || failed=1; exit $$failed

mutations: $(VENV)/.for-test
	$(RUN) tests/mutations.py $(ARGS)

soak: $(VENV)/.for-test
	$(RUN) tests/bench/tail_soak.py --minutes $(or $(MINUTES),60)

# Other programs live in environments of their own in .venv-bench, made by the script: what they need does not go
# together. ARGS="--quick --no-peers", ARGS=--lake-plan and the like are handed on.
bench: $(VENV)/.for-test
	@$(RUN) tests/bench/$(if $(BEFORE),before.py $(BEFORE),run.py) $(ARGS)

bench-spark: $(VENV)/.for-test
	@$(RUN) tests/bench/spark/spark_bench.py $(ARGS)

lint: $(VENV)/.for-check
	$(RUN) -m ruff format --check burler tests examples docs
	$(RUN) -m ruff check burler tests examples docs

types: $(VENV)/.for-check
	$(RUN) -m mypy

docs: $(VENV)/.for-check
	$(RUN) -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# Reads all pages and follows all references, and writes none: most of the time goes into the pages' navigation.
docs-check: $(VENV)/.for-check
	$(RUN) -m sphinx -W --keep-going -q -b dummy docs docs/_build/dummy

check: lint types docs-check

clean:
	rm -rf $(VENV) .venv-peers .venv-bench .venv-soap .venv-dist demo build dist docs/_build docs/reference .pytest_cache .mypy_cache .ruff_cache
