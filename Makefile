# `make start` runs Psst on the emulator, `make test` runs every test, `make install` puts `hearth` on
# your PATH. Each installs the system's packages that it needs.

CONFIGURATION ?= release
# Where `make install` puts bin/hearth, completions and the manual; DESTDIR comes before it.
PREFIX ?= $(HOME)/.local
# How long a first build takes.
MINUTES = $(if $(filter release,$(CONFIGURATION)),about eight,about five)
SCRIPTS := Sources/Tooling/Scripts
SWIFT_FOLDERS := Package.swift Sources emulator triggers functions Tests
VENV := .build/venv
# Records in .build/phases how long a command takes; .ci/run prints it.
PHASE := sh $(SCRIPTS)/phase.sh
# The seconds of each random test in the nightly run.
RANDOM_SECONDS ?= 120
# Tests that start processes and wait for them: one after the other, so that none of them waits for
# the rest.
APART := JourneyTests|WorkerFleetTests|BuilderTests

# Tests that compute for long: after the others, which would only wait for the processor.
HEAVY := CrashTests|MessageFuzzTests|WebChannelStateTests|VectorIndexTests|QueryEngineTests|DispatchModelTests|StorageConformance|FunctionsTestingTests|StoreModelTests

# Tests that run at once. All of them at once would make each other slower than their time limits.
PARALLEL := --experimental-maximum-parallelization-width 8
SWIFT_TEST := sh $(SCRIPTS)/swift-test.sh $(CONFIGURATION)

# A change is tested with the same random numbers each time, as many as fit in some seconds, so that
# it fails for what it changes; new ones are for the night.
SEED ?= 1
# Processes that run the clients' tests.
CLIENTS ?= 2

MINUTES_OF_FUZZING ?= 60
MINUTES_OF_NIGHTLY_FUZZING ?= 20

.PHONY: help start demo sample build install uninstall docs check-docs test unit compat run-unit run-compat build-tests nightly bench bench-all build-bench scale console-tasks \
	fuzz differential \
	format lint tidy check-subjects api-changes release-archive needs needs-python

help:
	@echo "make start     build, start the emulator, deploy Psst's functions (Ctrl-C stops)"
	@echo "make demo      Psst's assistant with example data and scripted answers, without a key"
	@echo "make sample    Psst with plenty of data to look at in the console, without a key"
	@echo "make install   hearth, its completions and manual below PREFIX ($(PREFIX)); make uninstall"
	@echo "make release-archive  what make install installs, as an archive for other machines"
	@echo "make test      every test: modules, conformance, journeys, the clients of others"
	@echo "make unit      only the Swift tests"
	@echo "make build     .build/release/hearth and .build/release/psst-functions"
	@echo "make api-changes  public declarations that differ from BASELINE, by default the last version"
	@echo "make docs      the reference and the tutorial as a site in .build/docs"
	@echo "make compat    the Python clients, and our own, against a started suite"
	@echo "make nightly   every test, with new random numbers for minutes, in release and debug"
	@echo "make fuzz      an hour of inputs for Firestore's endpoints, guided by the code that they reach"
	@echo "make differential  phones' dialogues against the official emulator, where gcloud is installed"
	@echo "make bench     the main measurements beside neighbours, about two minutes, release build"
	@echo "make bench-all  all of them but the largest, some minutes"
	@echo "make scale     Psst's long work over 100 000 messages, killed on the way"
	@echo "make console-tasks  the console's tasks over a million documents; release build"
	@echo "make format    format the sources;  make lint, tidy, check-docs, check-subjects: the checks of CI"

needs:
	@sh $(SCRIPTS)/needs.sh

needs-python: needs
	@sh $(SCRIPTS)/needs.sh python $(VENV) Tests/Compatibility/requirements.txt

build: needs
	@echo "Building hearth and psst-functions in $(CONFIGURATION) (first time: $(MINUTES) minutes on two cores) ..."
	@mkdir -p .build && touch .build/building-$(CONFIGURATION)
	swift build -c $(CONFIGURATION) --product hearth
	swift build -c $(CONFIGURATION) --product psst-functions
	@mv .build/building-$(CONFIGURATION) .build/built-$(CONFIGURATION)

# Without a CONFIGURATION of yours: release while it is up to date, else debug; `install` then makes
# the release build, too.
start demo sample: needs
	@exec sh $(SCRIPTS)/$@.sh $(if $(filter file,$(origin CONFIGURATION)),auto,$(CONFIGURATION))

install: needs
	@sh $(SCRIPTS)/install.sh install "$(if $(filter file,$(origin CONFIGURATION)),auto,$(CONFIGURATION))" "$(PREFIX)" "$(DESTDIR)"

uninstall:
	@sh $(SCRIPTS)/install.sh uninstall "$(CONFIGURATION)" "$(PREFIX)" "$(DESTDIR)"

release-archive: needs
	@sh $(SCRIPTS)/release-archive.sh "$(CONFIGURATION)"

api-changes: needs
	@sh $(SCRIPTS)/api-changes.sh $(BASELINE)

# Everything in one build. What computes and what waits for other programs run at once.
test: needs-python build-tests
	@$(MAKE) --no-print-directory -j2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=line) \
		run-unit run-compat

build-tests: needs
	$(PHASE) "$(CONFIGURATION) build with tests" swift build -c $(CONFIGURATION) --build-tests

unit: build-tests
	@$(MAKE) --no-print-directory run-unit

compat: needs-python build-tests
	@$(MAKE) --no-print-directory run-compat

run-unit: export HEARTH_TEST_SEED ?= $(SEED)
run-unit:
	$(PHASE) "module tests" $(SWIFT_TEST) $(PARALLEL) --skip '$(APART)|$(HEAVY)|PsstTests'
	$(PHASE) "tests that compute" $(SWIFT_TEST) $(PARALLEL) --filter '$(HEAVY)'
	$(PHASE) "tests of Psst" $(SWIFT_TEST) $(PARALLEL) --filter PsstTests
	$(PHASE) "journeys" $(SWIFT_TEST) --no-parallel --filter '$(APART)'

# Our own client against a running suite, then those of others.
run-compat:
	$(PHASE) "our own client" .build/$(CONFIGURATION)/hearth exec --no-functions -- \
		$(SWIFT_TEST) --filter LiveFirestoreTests
	CONFIGURATION=$(CONFIGURATION) $(PHASE) "clients of others" \
		$(VENV)/bin/python -m pytest -q -n $(CLIENTS) --dist loadfile --timeout 120 --durations 5 \
		-m 'not nightly' Tests/Compatibility

# Random tests for minutes each, with new numbers; what only a change's tests leave out.
nightly:
	HEARTH_TEST_SECONDS=0 HEARTH_RANDOM_SECONDS=$(RANDOM_SECONDS) $(MAKE) test SEED=
	$(MAKE) unit CONFIGURATION=debug SEED=
	$(MAKE) build-bench
	CONFIGURATION=release $(VENV)/bin/python -m pytest -q --timeout 120 -m nightly Tests/Compatibility
	$(MAKE) fuzz MINUTES_OF_FUZZING=$(MINUTES_OF_NIGHTLY_FUZZING)

# libFuzzer; the smallest set that reaches all known code is kept in Tests/FuzzTargets/corpus.base64.
fuzz: needs
	@MINUTES_OF_FUZZING=$(MINUTES_OF_FUZZING) sh $(SCRIPTS)/fuzz.sh

differential: needs-python
	$(VENV)/bin/python Tests/Compatibility/differential.py
	$(VENV)/bin/python Tests/Compatibility/differential_queries.py

bench: build-bench
	.build/release/Benchmarks

bench-all: build-bench
	.build/release/Benchmarks --all

build-bench: build
	@sh $(SCRIPTS)/needs.sh python .build/benchmarks-venv Tests/Benchmarks/requirements.txt
	HEARTH_ALL_TARGETS=1 swift build -c release --product Benchmarks
	swift build -c release --product SampleFunctions

scale: build needs-python
	$(VENV)/bin/python Tests/Compatibility/scale.py --configuration $(CONFIGURATION)

console-tasks: build needs-python
	$(VENV)/bin/python Tests/Compatibility/console_tasks.py --configuration $(CONFIGURATION)

format:
	swift format -i -r -p $(SWIFT_FOLDERS)

lint:
	swift format lint --strict -r -p $(SWIFT_FOLDERS)

# The subjects of the commits since BASE, a commit; by default origin/main.
check-subjects:
	@sh $(SCRIPTS)/check-subjects.sh $(BASE)

tidy: needs
	HEARTH_ALL_TARGETS=1 swift package --disable-sandbox tidy
	@sh $(SCRIPTS)/check-portability.sh

docs: needs
	swift build -c $(CONFIGURATION) --product HearthLibraries
	@sh $(SCRIPTS)/docs.sh $(CONFIGURATION)

# Links of the modules' pages, those of README.md and docs/, and the files and tests that
# docs/psst-coverage.md names.
check-docs: needs
	swift build -c $(CONFIGURATION) --build-tests
	@sh $(SCRIPTS)/check-docs.sh $(CONFIGURATION)
	@sh $(SCRIPTS)/check-links.sh
	@sh $(SCRIPTS)/check-coverage.sh
