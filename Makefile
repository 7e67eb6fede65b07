# make run      start the service on http://localhost:3000
# make test     run the tests of every rule and page, in about three minutes on two processors
# make test-long run the long tests and those of root, in about a quarter of an hour: attacks, kills, packages, a machine
# make test-all run both
# make check    check style, types, the order of the layers, and known vulnerabilities
# make dist     build the wheel, its constraints, the sdist and the SBOM of an installation into dist/
# make install  as root under systemd: copy the units, and the settings if there are none
# make image    build the container image into dist/, as root on Debian, with buildah and mmdebstrap
# make bench    measure the speed of the service and of its peers
# make mutants  change the source at 60 random places, and list the changes that no test finds
# make conform  run the tests of the specification against the implementation at URL
# make lock     update the lock files: what the service needs, what its build needs, and everything for developers
# The environment is in .venv. It is updated if a lock file or the guide changes. GNU make 3.81 (macOS) is enough.

PYTHON ?= python3
DIST := dist
# The time of the last commit, so that two builds of it are equal to the byte.
EPOCH := $(shell git log -1 --format=%ct 2>/dev/null || echo 1767225600)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
INSTALL := $(PIP) install
NPM := tests/npm/node_modules/.package-lock.json

.PHONY: run test test-all test-long check mutants conform dist image install may-install bench lock clean

run: .venv/run.stamp
	@exec $(BIN)/mahasiswa

PYTEST := $(BIN)/python -m pytest --durations 25

test: .venv/dev.stamp
	@$(PYTEST) --numprocesses 3 --max-worker-restart 0 --dist loadfile --no-loadscope-reorder $(ARGS)
	@echo 'make test-long runs the tests that take long.'

test-all: test
	@$(MAKE) test-long

# Two long tests run at a time, except those that measure the time of answers. Those that fail run once more, because
# another program may have taken the processors; the first failure stays in the output. Exit code 5: there is no such test.
twice = $(1) $(ARGS) || [ $$? = 5 ] || $(1) --last-failed --last-failed-no-failures none $(ARGS)
TWO := --numprocesses 2 --max-worker-restart 0 --dist loadfile --no-loadscope-reorder
test-long: .venv/dev.stamp
	@$(call twice,$(PYTEST) $(TWO) -m "(torture or root) and not alone")
	@$(call twice,$(PYTEST) -m "(torture or root) and alone")

check: .venv/dev.stamp
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/pip-audit --progress-spinner off --require-hashes --disable-pip -r requirements.txt >.venv/audit.txt 2>&1 \
	  || ! grep 'known vulnerabilit.* in ' .venv/audit.txt || { cat .venv/audit.txt; exit 1; }
	@if grep -q 'could not be audited\|rror' .venv/audit.txt; then echo 'pip-audit could not reach its database, so nothing was audited'; fi

# Example: make mutants SEED=7 COUNT=10
mutants: .venv/dev.stamp
	@$(BIN)/python tests/mutants.py $(or $(SEED),1) $(or $(COUNT),60)

# Example: make conform URL=http://localhost:3000
conform: .venv/dev.stamp
	@CONFORM_URL="$(URL)" $(BIN)/python -m pytest tests/spec -m "not beyond" $(ARGS)

# The SBOM lists the packages of an environment that holds the wheel and the lock, and nothing else.
dist: .venv/dev.stamp
	@rm -rf $(DIST)/mahasiswa-* .venv/wheel
	@SOURCE_DATE_EPOCH=$(EPOCH) $(BIN)/hatchling build --directory $(DIST)
	@sed -n 's/^\([a-z].*\) \\$$/\1/p' requirements.txt > $(DIST)/constraints.txt
	@$(BIN)/python -m venv --without-pip .venv/wheel
	@$(PIP) --python .venv/wheel install --require-hashes -r requirements.txt
	@$(PIP) --python .venv/wheel install --no-deps --no-index $(DIST)/*.whl
	@$(BIN)/cyclonedx-py environment .venv/wheel --pyproject pyproject.toml --output-reproducible --output-file $(DIST)/mahasiswa.cdx.json
	@ls $(DIST)

image: dist
	@PYTHON=$(BIN)/python packaging/image/build.sh $(DIST)/*.whl $(DIST)
	@ls $(DIST)/*.oci.tar

# The user of the service reads the program, also if root has cloned it with umask 077. The folder .git may hold a password.
install: may-install .venv/run.stamp
	@chmod a+rX $(if $(filter /srv/mahasiswa/%,$(CURDIR)),/srv/mahasiswa) . && chmod -R a+rX .venv src docs
	@[ -s /etc/mahasiswa.env ] || install -m 640 -g mahasiswa packaging/systemd/mahasiswa.env /etc/mahasiswa.env
	@install -m 644 packaging/systemd/*.service packaging/systemd/*.timer /etc/systemd/system
	@ln -sfn $(CURDIR)/.venv/bin/mahasiswa /usr/local/bin/mahasiswa
	@systemctl daemon-reload

may-install:
	@[ -w /etc/systemd/system ] || { echo 'This user may not install units. Run it as root.' >&2; exit 1; }

bench: .venv/dev.stamp
	@$(BIN)/python -m bench.run $(ARGS)

# An environment without its stamp is not complete, for example after a power cut, and is made again. After an upgrade of
# the system, another Python may look for the packages in a folder of its own, so the stamp is removed.
REMOVED := $(shell [ ! -e .venv/run.stamp ] || $(BIN)/python -Ic 'import mahasiswa' 2>/dev/null || rm .venv/run.stamp)
.venv/run.stamp: requirements.txt requirements-build.txt pyproject.toml hatch_build.py docs/panduan.md
	@[ -w . ] || { echo "This user may not write to $(CURDIR), where the environment is made." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit("mahasiswa needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	@[ -e $@ ] || { rm -rf .venv && $(PYTHON) -m venv .venv; } || \
	  { rm -rf .venv; echo 'The environment could not be created. On Debian and Ubuntu: apt install python3-venv' >&2; exit 1; }
	@$(INSTALL) --require-hashes -r requirements.txt -r requirements-build.txt
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@sync
	@touch $@

.venv/dev.stamp: .venv/run.stamp requirements-dev.txt | $(NPM)
	@$(INSTALL) --require-hashes -r requirements-dev.txt
	@touch $@

# The packages that tests of pages need: without npm or its registry, these tests are skipped.
$(NPM): tests/npm/package-lock.json
	@cd tests/npm && npm ci >/dev/null || echo 'npm could not install the packages of tests/npm.'

# The lock files hold every platform, with hashes, and no address of a package index.
lock: .venv/run.stamp
	@$(INSTALL) uv
	$(BIN)/uv pip compile $(LOCK) pyproject.toml --extra postgres --output-file requirements.txt
	$(BIN)/uv pip compile $(LOCK) --group build --constraint requirements.txt --output-file requirements-build.txt
	$(BIN)/uv pip compile $(LOCK) pyproject.toml --extra postgres --group build --group check --group dist --group test \
	  --constraint requirements.txt --constraint requirements-build.txt --output-file requirements-dev.txt

LOCK := --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header

clean:
	rm -rf .venv
