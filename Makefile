# Everything runs in .venv, made on first use from requirements.lock, with Refledger itself installed editable.
# To choose the Python it is made with: make clean demo PYTHON=/path/to/python3.12

PYTHON      ?=
LOCK_PYTHON ?= python3.11
export HERE := $(CURDIR)
VENV        := .venv/bin/python
READY       := .venv/.refledger-ready

.DEFAULT_GOAL := help
.PHONY: help demo test lint types bench wheel lock clean FORCE

help: ## list the targets
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  make \1	\2/p' Makefile

demo: $(READY) ## show on a small log how a wrong answer is walked back
	@$(VENV) -m refledger demo

test: $(READY) ## run the tests
	@$(VENV) -m pytest

lint: $(READY) ## check style and formatting
	@$(VENV) -m ruff check .
	@$(VENV) -m ruff format --check .

types: $(READY) ## check the types
	@$(VENV) -m mypy

bench: $(READY) ## measure
	@$(VENV) -m tests.benchmarks

wheel: $(READY) ## build the sdist, and from it the wheel, in dist/
	@rm -rf dist
	@$(VENV) -m build --no-isolation

clean: ## remove .venv and everything built or cached
	@rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The ready mark is written last and taken away first, so an environment without one was never finished and is begun anew.
# It holds the folder it was made in, since an environment that was moved or copied would still import from the old place.
ifneq ($(shell $(VENV) -c '' 2>/dev/null && cat $(READY) 2>/dev/null),$(CURDIR))
$(READY): FORCE
endif

$(READY): requirements.lock pyproject.toml
	@if [ "$$(cat $@ 2>/dev/null)" != "$$HERE" ] || ! $(VENV) -c '' 2>/dev/null; then \
	  for python in "$(PYTHON)" python3 python3.13 python3.12 python3.11; do \
	    "$$python" -c 'import sys, ensurepip, sqlite3, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; \
	    python=; \
	    if [ -n "$(PYTHON)" ]; then break; fi; \
	  done; \
	  if [ -z "$$python" ]; then \
	    echo "Refledger needs Python 3.11 or newer with its modules venv, ensurepip and sqlite3." >&2; \
	    echo "Tried: $(if $(PYTHON),$(PYTHON),python3 python3.13 python3.12 python3.11 on the PATH)." >&2; \
	    echo "Install one (on Debian and Ubuntu python3 and python3-venv), or name one: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; \
	    exit 1; \
	  fi; \
	  echo "Making .venv with $$("$$python" --version)" >&2; \
	  rm -rf .venv && "$$python" -m venv .venv || exit 1; \
	fi; \
	rm -f $@; \
	echo "Installing what requirements.lock names" >&2; \
	$(VENV) -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock && \
	$(VENV) -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable . && \
	printf '%s\n' "$$HERE" > $@

# The oldest Python we support makes the lock, because only there do all conditional dependencies apply. Pins that still fit
# pyproject.toml stay; `make lock LOCK_FLAGS=--upgrade` takes the newest. This machine's pip settings are kept out of it.
lock: ## remake requirements.lock from pyproject.toml
	@"$(LOCK_PYTHON)" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null || \
	  { echo "The lock is made with Python 3.11, our oldest: make lock LOCK_PYTHON=/path/to/python3.11" >&2; exit 1; }
	@tools=$$(mktemp -d) && trap 'rm -rf "$$tools"' EXIT && \
	export PIP_CONFIG_FILE=/dev/null PIP_DISABLE_PIP_VERSION_CHECK=1 CUSTOM_COMPILE_COMMAND='make lock' && unset PIP_FIND_LINKS && \
	"$(LOCK_PYTHON)" -m venv "$$tools" && "$$tools/bin/python" -m pip install --quiet pip-tools==7.6.2 && \
	"$$tools/bin/python" -m piptools compile --quiet --extra dev --generate-hashes --allow-unsafe --strip-extras \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host $(LOCK_FLAGS) --output-file requirements.lock pyproject.toml

FORCE:
