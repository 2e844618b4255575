# The verbs. Each sets up what it needs under .venv: a machine with Python >= 3.11 and make is enough.
# One built with optimisations (a distribution's is, pyenv's is not unless told to) is a third faster: PYTHON=...
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
NODE_READY := $(VENV)/.node-stamp
READY := $(VENV)/.stamp

# Where it is set, each of the tests' processes would compile all of their modules anew.
unexport PYTHONDONTWRITEBYTECODE

# A worker takes whole files, because a module's fixtures are servers.
IN_FILES := --dist loadfile --no-loadscope-reorder
PARALLEL := --numprocesses logical --maxprocesses 5 $(IN_FILES)
# Tests that wait for clocks leave most of the processors idle.
PAIR := --numprocesses 2 $(IN_FILES)

.PHONY: help install run test test-judged test-together test-simulated test-alone test-all test-pythons check coverage wheels generate golden record-apache conformance-faults drawn-requests drawn-properties clients clients-cluster clients-secured transactions scoreboard franz-suite rdkafka-suite streams shares coordinators migration histories secured bench instructions bench-quorum bench-cluster bench-groups bench-spark bench-testing fuzz attack mixed guests replicas dropin crash sim sim-clusters model mutants mutants-random spark spark-cluster spark-campaign apache-views ingest-kills kips walkthroughs soak chaos chaos-audit damage compose clean
.DEFAULT_GOAL := help

help:  ## list the verbs
	@$(PYTHON) -c "import re; [print(f'make {v:15}{d}') for v, d in re.findall(r'^([\w-]+):.*?## (.*)', open('Makefile').read(), re.M)]"

$(BIN)/python:
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Python 3.11 or newer is needed: make PYTHON=python3.x')"
	$(PYTHON) -m venv $(VENV)

$(NODE_READY): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --compile --editable '.[fast]'
	touch $@

$(READY): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --compile --editable '.[fast,test,dev]'
	$(BIN)/python -m compileall -q kraft_wire
	touch $@ $(NODE_READY)

install: $(READY)  ## the virtual environment with everything for running and developing

run: $(NODE_READY)  ## a node on 127.0.0.1:9092, data under ./kraft-wire-data
	$(BIN)/python -m compileall -q kraft_wire
	$(BIN)/kraft-wire server $(ARGS)

test: $(READY)  ## every test that needs nothing but Python, in minutes; what was not run is listed
	$(BIN)/python -m pytest $(PARALLEL) --judges without $(ARGS)

test-judged: $(READY)  ## every test with a judge that is not ours, but for those of make test-alone
	$(BIN)/python -m pytest $(PARALLEL) --judges only -m "not alone" $(ARGS)

test-together: $(READY)  ## every test but those of make test-alone: the two lanes above in one queue
	$(BIN)/python -m pytest $(PARALLEL) -m "not alone" $(ARGS)

test-simulated: $(READY)  ## the simulators' own tests, which compute and wait for nothing
	$(BIN)/python -m pytest $(PAIR) tests/sim $(ARGS)

test-alone: $(READY)  ## tests that show how long something takes, or need the machine: two files at a time, and nothing else
	$(BIN)/python -m pytest $(PAIR) -m alone $(ARGS)

test-all: $(READY)  ## all that must pass, with every judge: checks, coverage, simulators, tests
	$(BIN)/python -m tests.everything $(ARGS)

test-pythons:  ## make test on each supported Python that is found (ARGS="/path/to/python3.12 ...")
	$(PYTHON) -m tests.pythons $(ARGS)

check: $(READY)  ## format, lint, types, import contracts, tidiness, generated code
	$(BIN)/python -m tests.check $(ARGS)

coverage: $(READY)  ## every branch of the hand-written wire/ and storage/, or a failure
	$(BIN)/python -m pytest -q $(PARALLEL) --cov=kraft_wire/wire --cov=kraft_wire/storage --cov-branch --cov-report=term-missing:skip-covered --cov-fail-under=100 tests/wire tests/storage tests/golden/test_corpus.py tests/kips/test_transactions_storage.py $(ARGS)

wheels: $(READY)  ## the pure wheel, and one with compiled modules for this Python (needs a C compiler), into dist/
	$(BIN)/python -m codegen.wheels $(ARGS)

generate: $(READY)  ## generated code from schemas/
	$(BIN)/python -m codegen $(ARGS)

golden: $(READY)  ## vectors made by Apache's own classes, compared both ways
	$(BIN)/python -m tests.golden $(ARGS)

record-apache: $(READY)  ## what Apache Kafka 4.3.1 answers to every conformance case, kept for the tests
	$(BIN)/python -m tests.conformance.recording $(ARGS)

conformance-faults: $(READY)  ## faults in the node, each of which a named conformance case must find
	$(BIN)/python -m tests.conformance.faults $(ARGS)

drawn-requests: $(READY)  ## requests of every API, drawn from the schemas, answered by Apache Kafka 4.3.1 and by us
	$(BIN)/python -m tests.apache.schema_drawn $(ARGS)

drawn-properties: $(READY)  ## drawn server.properties, read by Apache Kafka 4.3.1 and by us (ARGS="--seed 7 --files 30000")
	$(BIN)/python -m tests.apache.server_properties $(ARGS)

clients: $(READY)  ## the table of scenarios and real clients
	$(BIN)/python -m tests.clients $(ARGS)

scoreboard: $(READY)  ## clients' own published tests and the conformance suite, on ours and on Apache's, into docs/COMPATIBILITY.md
	$(BIN)/python -m tests.scoreboard --write $(ARGS)

clients-cluster: $(READY)  ## the same table against three brokers, one of which restarts every 20 s
	$(BIN)/python -m tests.clients --cluster $(ARGS)

clients-secured: $(READY)  ## every client, protocol, login and fault, on Apache's node and on ours (ARGS="--client NAME")
	$(BIN)/python -m tests.clients.secured $(ARGS)

transactions: $(READY)  ## transactions of real clients: on one node, and on three brokers that restart in turn
	$(BIN)/python -m tests.clients.transactions $(ARGS)
	$(BIN)/python -m tests.clients.transactions --cluster $(ARGS)

franz-suite: $(READY)  ## franz-go's own tests of exactly once, at their full size (ARGS="--records 500000 --cluster")
	$(BIN)/python -m tests.clients.transactions.franz_suite $(ARGS)

rdkafka-suite: $(READY)  ## librdkafka's own tests of transactions (ARGS="--source DIR --cluster")
	$(BIN)/python -m tests.clients.transactions.librdkafka_suite $(ARGS)

streams: $(READY)  ## Kafka Streams under kill -9 of brokers and of itself (ARGS="--make mixed --protocol streams")
	$(BIN)/python -m tests.streams $(ARGS)

shares: $(READY)  ## members of a share group under kill -9 of brokers: nothing lost, nothing twice (ARGS="--make mixed")
	$(BIN)/python -m tests.share_groups $(ARGS)

coordinators: $(READY)  ## groups of every kind under kill -9 of their coordinators (ARGS="--make mixed --kills 100")
	$(BIN)/python -m tests.group_kinds $(ARGS)

migration: $(READY)  ## members that change between the classic and the consumer protocol, beside Apache's node (ARGS="--rounds 100")
	$(BIN)/python -m tests.group_kinds.migrate $(ARGS)

histories: $(READY)  ## what transactional clients see of three brokers under kills, pauses and one-way cuts (root), judged (ARGS="--make mixed")
	$(BIN)/python -m tests.histories --faults 300 $(ARGS)

secured: $(READY)  ## secured clusters of both makes under kills: nothing lost, nothing served without a right (ARGS="--layout mixed")
	$(BIN)/python -m tests.secured_clusters $(ARGS)

bench: $(READY)  ## paired benchmarks against peers
	$(BIN)/python -m benchmarks $(ARGS)

instructions: $(READY)  ## instructions of each hot path by cachegrind, against budgets (ARGS=--write sets them)
	$(BIN)/python -m benchmarks.instructions $(ARGS)

bench-quorum: $(READY)  ## three controllers of ours beside Apache's three
	$(BIN)/python -m benchmarks.quorum $(ARGS)

bench-cluster: $(READY)  ## three brokers on three controllers of ours beside Apache's
	$(BIN)/python -m benchmarks.cluster $(ARGS)

bench-groups: $(READY)  ## 1,000 groups of 5 members, one of 1,000, and share consumers, beside Apache's node
	$(BIN)/python -m benchmarks.groups $(ARGS)

bench-spark: $(READY)  ## the pipeline beside Spark's own Kafka connector and Apache's tools
	$(BIN)/python -m benchmarks.spark $(ARGS)

bench-testing: $(READY)  ## starting and emptying a broker in a test, compared with Apache's, into docs/TESTING.md
	$(BIN)/python -m benchmarks.clusters_in_tests --write $(ARGS)

fuzz: $(READY)  ## coverage-guided fuzzing of every parser
	$(BIN)/python -m tests.fuzz $(ARGS)

attack: $(READY)  ## hostile clients against a live server
	$(BIN)/python -m tests.attack $(ARGS)

mixed: $(READY)  ## quorums of Apache's controllers and ours: every scenario, and hundreds of kills
	$(BIN)/python -m tests.mixed $(ARGS)

guests: $(READY)  ## two brokers of Apache's on controllers of ours, the active one killed at every step
	$(BIN)/python -m tests.guests $(ARGS)

replicas: $(READY)  ## three replicas of a million records, their brokers killed: ARGS="--layout mixed", or ours (root)
	$(BIN)/python -m tests.replicas $(ARGS)

dropin: $(READY)  ## a million records on one data directory that both makes take turns on
	KRAFT_WIRE_DROP_IN_RECORDS=1000000 $(BIN)/python -m pytest -q -s tests/apache/test_drop_in.py $(ARGS)

crash: $(READY)  ## every crash point of storage and of a quorum's nodes on simulated disks (ARGS=--quick)
	$(BIN)/python -m kraft_wire.sim.crash.points $(ARGS)

sim: $(READY)  ## whole simulated clusters under faults, every event judged (SEEDS=A:B EVENTS=N)
	$(BIN)/kraft-wire sim --seeds $(or $(SEEDS),0:5200) --events $(or $(EVENTS),2000) $(ARGS)

sim-clusters: $(READY)  ## the same with brokers, partitions and their clients (SEEDS=A:B EVENTS=N)
	$(BIN)/kraft-wire sim --brokers 0 --seeds $(or $(SEEDS),0:2500) --events $(or $(EVENTS),4000) $(ARGS)

model: $(READY)  ## every state of the quorum's model within its bounds, then random walks (ARGS="--only NAME")
	$(BIN)/python -m kraft_wire.sim.quorum_model $(ARGS)

mutants: $(READY)  ## deliberate bugs, every one of which some check must find
	$(BIN)/python -m mutants $(if $(ONLY),--only $(ONLY)) $(ARGS)

mutants-random: $(READY)  ## changes drawn at random, run against what covers them (SEED=S COUNT=N PACKAGES=P)
	$(BIN)/python -m mutants.random --seed $(or $(SEED),1) --count $(or $(COUNT),400) $(if $(PACKAGES),--packages $(PACKAGES)) $(ARGS)

spark: $(READY)  ## the pipeline on Spark, one shared session; without Java the tests say so
	$(BIN)/python -m pytest -q tests/spark $(ARGS)

spark-cluster: $(READY)  ## the wheel on a standalone cluster, a master and two workers: audit, and ingest into Delta
	$(BIN)/python -m pytest -q tests/spark/wheel_cluster.py $(ARGS)

spark-campaign: $(READY)  ## seeds on a standalone cluster, a worker killed on the way (ARGS="--seeds 0:10000")
	$(BIN)/python -m tests.spark.campaign_on_cluster $(ARGS)

apache-views: $(READY)  ## every view of what three nodes of Apache's wrote, beside Apache's own classes and connector (ARGS=NODE_DIR…)
	$(BIN)/python -m tests.spark.apache_views $(ARGS)

ingest-kills: $(READY)  ## kill -9 of an ingest's driver and workers, 20 times: every record once (ARGS="--sink delta")
	$(BIN)/python -m tests.spark.kills $(ARGS)

walkthroughs: $(READY)  ## docs/walkthroughs run anew, with their pictures; read the diff
	$(BIN)/python -m tests.walkthroughs --write

kips: $(READY)  ## requirements of the KIPs and their tests: counted, run, and none may be without
	$(BIN)/python -m pytest -q tests/kips
	$(BIN)/python -m tests.kips

soak: $(READY)  ## kill -9 under load, again and again
	$(BIN)/python -m tests.soak $(ARGS)

chaos: $(READY)  ## kill -9, pauses and one-way partitions (root) of three nodes, their history judged
	$(BIN)/python -m tests.chaos $(ARGS)

chaos-audit: $(READY)  ## what a chaos run leaves, audited; and planted losses that a ledger must tell
	$(BIN)/python -m tests.audit.chaos $(ARGS)

damage: $(READY)  ## seeded damage to three replicas: each fault is found and named once (ARGS=NODE_DIR… or --spark)
	$(BIN)/python -m tests.audit $(ARGS)

compose:  ## three controllers, two brokers and an Apache broker beside them, in containers
	docker compose up --build --wait

clean:  ## remove what the other verbs made
	rm -rf .venv .mypy_cache .ruff_cache .import_linter_cache build dist
