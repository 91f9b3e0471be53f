# `make start` runs Psst on the emulator, `make test` runs every test. Both install what they need.

CONFIGURATION ?= release
SWIFT_FOLDERS := Package.swift Sources emulator triggers functions Tests
VENV := .build/venv
JOURNEYS ?= 20
CRASHES ?= 5000
# Tests that start processes and wait for them: alone, so that no other test waits with them and
# none of them waits for the rest.
APART := JourneyTests|WorkerFleetTests|FunctionsBuilderTests

# Tests that compute for long: after the others, which would wait for the processor in vain.
HEAVY := CrashTests|VectorIndexTests|QueryEngineTests|StorageConformance|PsstTests|FunctionsTestingTests

.PHONY: help start build test unit compat journeys crashes bench scale format lint tidy needs needs-python

help:
	@echo "make start     build, start the emulator, deploy Psst's functions (Ctrl-C stops)"
	@echo "make test      every test: rooms, conformance, journeys, the clients of others"
	@echo "make build     .build/release/hearth and .build/release/psst-functions"
	@echo "make compat    the Python clients against a started suite"
	@echo "make journeys  200 seeded crash journeys (make test runs 20)"
	@echo "make crashes   thousands of seeded losses of power (make test runs hundreds)"
	@echo "make bench     measurements beside neighbours, about two minutes, release build"
	@echo "make scale     Psst's long work over 100 000 messages, killed on the way"
	@echo "make format    format the sources;  make lint, make tidy: the checks of CI"

needs:
	@sh Sources/Scripts/needs.sh

needs-python: needs
	@sh Sources/Scripts/needs.sh python $(VENV) Tests/Compatibility/requirements.txt

build: needs
	@echo "Building hearth and psst-functions (first time: several minutes) ..."
	swift build -c $(CONFIGURATION) --product hearth
	swift build -c $(CONFIGURATION) --product psst-functions

start: build
	@exec .build/$(CONFIGURATION)/hearth start

test: unit compat

unit: needs
	swift build --build-tests
	swift test --skip-build --parallel --skip '$(APART)|$(HEAVY)'
	swift test --skip-build --parallel --filter '$(HEAVY)'
	HEARTH_JOURNEYS=$(JOURNEYS) swift test --skip-build --no-parallel --filter '$(APART)'

journeys: needs
	swift build --build-tests
	HEARTH_JOURNEYS=200 swift test --skip-build --no-parallel --filter JourneyTests

crashes: needs
	swift build --build-tests
	HEARTH_CRASHES=$(CRASHES) swift test --skip-build --filter CrashTests

compat: needs-python
	swift build
	$(VENV)/bin/python -m pytest -q Tests/Compatibility

bench: build
	@sh Sources/Scripts/needs.sh python .build/benchmarks-venv Tests/Benchmarks/requirements.txt
	swift build -c release --product Benchmarks
	swift build -c release --product SampleFunctions
	.build/release/Benchmarks

scale: build needs-python
	$(VENV)/bin/python Tests/Compatibility/scale.py --configuration $(CONFIGURATION)

format:
	swift format -i -r -p $(SWIFT_FOLDERS)

lint:
	swift format lint --strict -r -p $(SWIFT_FOLDERS)

tidy: needs
	swift package --disable-sandbox tidy
