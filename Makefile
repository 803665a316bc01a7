# Footnote's commands; `make help` lists them. Needs Python 3.11 or newer with venv and pip, and nothing else.
# Another interpreter: `make run PYTHON=/path/to/python3`.

SHELL := /bin/sh
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
# A half-made environment counts as none.
.DELETE_ON_ERROR:

# Empty: the first on the path that is new enough.
PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin

# One environment, three steps: made, able to run, able to develop. Everything in the runtime lock is in the development
# lock too, at the same version, so whichever comes first the other adds to it.
MADE := $(VENV)/.made
RUNTIME := $(VENV)/.runtime
DEVELOPMENT := $(VENV)/.development

# Versions and hashes come from the lock alone: a constraint file of the machine has no say. Wheels only, so that
# installing needs no compiler and runs no code of a package.
PIP := PIP_CONSTRAINT=/dev/null PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 $(BIN)/python -m pip
INSTALL := $(PIP) install --require-hashes --progress-bar off
# The one development package that comes without a wheel; pure Python, built with the locked setuptools.
FROM_SOURCE := forbiddenfruit

.PHONY: help run test lint types imports check lock bench clean

help: ## List these commands.
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r name text; do \
		printf '%-16s%s\n' "$$name" "$$text"; done

run: $(RUNTIME) ## Start Footnote; the terminal chat when no chat tokens are set. Questions may be piped in.
	@$(BIN)/footnote run --first-library docs

test: $(DEVELOPMENT) ## Run the whole suite; `make test ARGS="tests/retrieval -x"` runs a part.
	@$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile $(ARGS)

lint: $(DEVELOPMENT) ## Check style and formatting with ruff.
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(DEVELOPMENT) ## Check types with mypy, strictly.
	@$(BIN)/mypy

imports: $(DEVELOPMENT) ## Check who imports whom with import-linter.
	@$(BIN)/lint-imports

check: lint types imports test ## All four of the above.

lock: $(DEVELOPMENT) ## Write both locks from pyproject.toml; `make lock ARGS=--upgrade` takes newer versions.
	@$(LOCK) --group dev $(ARGS) --output-file requirements-dev.lock
	@$(LOCK) --constraint requirements-dev.lock --only-binary :all: --output-file requirements.lock
	@echo "Wrote requirements.lock and requirements-dev.lock."

LOCK := $(BIN)/uv --no-config pip compile pyproject.toml --group build --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' --quiet

bench: ## List the measuring scripts, each with what it measures.
	@for script in bench/*.py; do test -f "$$script" || continue; \
		printf '%s  %s\n' "$$script" "$$(sed -n '1s/^"""\(.*\)/\1/p' "$$script" | sed 's/"""$$//')"; done
	@echo "Run one with: $(BIN)/python bench/NAME.py"

clean: ## Remove the environment and the tools' caches; documents and libraries stay.
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find adapters bot retrieval tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# An environment knows its own path: one that came here with a moved folder is made anew.
ifneq ($(wildcard $(MADE)),)
ifneq ($(shell cat $(MADE)),$(CURDIR))
$(shell rm -rf $(VENV))
endif
endif

NEW_ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, 11))'

$(MADE):
	@python='$(PYTHON)'; \
	if [ -z "$$python" ]; then \
		for name in python3 python3.13 python3.12 python3.11 python3.14; do \
			if $$name $(NEW_ENOUGH) </dev/null >/dev/null 2>&1; then python=$$name; break; fi; done; \
	elif ! $$python $(NEW_ENOUGH) </dev/null; then \
		echo "Footnote needs Python 3.11 or newer; '$$python' is not. Name another: make PYTHON=/path/to/python3" >&2; exit 1; fi; \
	if [ -z "$$python" ]; then \
		echo "Footnote needs Python 3.11 or newer, and none was found. If it is not on the path, name it: make PYTHON=/path/to/python3" >&2; exit 1; fi; \
	if ! $(BIN)/python $(NEW_ENOUGH) </dev/null >/dev/null 2>&1; then \
		echo "Making the environment in $(VENV) with $$($$python -V) …"; \
		$$python -m venv --clear $(VENV) </dev/null || { rm -rf $(VENV); \
			echo "'$$python' cannot make environments. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }; fi; \
	printf '%s\n' '$(CURDIR)' >$@

$(RUNTIME): requirements.lock pyproject.toml | $(MADE)
	@lock=requirements.lock; options='--only-binary=:all:'; $(INSTALL_LOCK)
	@$(INSTALL_PROJECT)
	@touch $@

$(DEVELOPMENT): requirements-dev.lock pyproject.toml $(RUNTIME)
	@lock=requirements-dev.lock; options='--only-binary=:all: --no-binary=$(FROM_SOURCE) --no-build-isolation --use-pep517'; $(INSTALL_LOCK)
	@touch $@

# Installs $$lock and tells how far it has come, in place of pip's several lines a package. Errors pass, and of the
# warnings those about a slow network; what else pip warns of (spelling of extras, empty local indexes) helps nobody here.
define INSTALL_LOCK
	total=$$(grep -c '==' $$lock); count=0; done=$(VENV)/.done; rm -f $$done; \
	if [ -t 1 ]; then back=$$(printf '\r'); clear=$$(printf '\r\033[K'); else back=; clear=; fi; \
	echo "Installing from $$lock (up to $$total packages) …"; \
	{ $(INSTALL) $$options -r $$lock 2>&1 </dev/null && : >$$done; } | while IFS= read -r line; do \
		case $$line in \
			Collecting*|Requirement*) count=$$((count + 1)); \
				if [ -n "$$back" ]; then printf '%s  %s of %s' "$$back" $$count $$total; \
				elif [ $$((count % 20)) = 0 ]; then echo "  $$count of $$total"; fi ;; \
			Installing*) echo "$$clear  unpacking …" ;; \
			WARNING:\ Retrying*) echo "$$clear  $${line#WARNING: }" >&2 ;; \
			Successfully*|Looking*|Ignoring*|Building*|Processing*|WARNING*|' '*) ;; \
			*) echo "$$clear$$line" >&2 ;; \
		esac; done; \
	if [ -f $$done ]; then rm -f $$done; printf '%s' "$$clear"; else \
		echo "The packages could not be installed; the reason is above. When it is mended, the same command goes on from here." >&2; \
		exit 1; fi
endef

# setuptools warns of folders in the working directory that could hide the project; here they are the project.
define INSTALL_PROJECT
	PYTHONWARNINGS=ignore $(PIP) install --quiet --no-index --no-deps --no-build-isolation --editable . </dev/null
endef
