# make help lists the targets. The targets only call scripts in hack/, which can also be run by hand.
.DEFAULT_GOAL := help
.PHONY: help arm64 bench demo test lint unit tracer e2e survival adversary meters articles accuracy fuzz lab generate images up down clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' Makefile

demo: ## start a cluster in a box, install the chart, run examples/rust-vs-python.yaml; ARGS="--context NAME …" for your own cluster
	hack/demo $(ARGS)

test: ## everything that CI runs, including the end-to-end tests on the cluster in a box
	hack/test

lint: ## format, clippy, gofmt, go vet, shellcheck, English
	hack/test lint

unit: ## the tests that need no cluster
	hack/test unit

tracer: ## the proof of the energy figures, short form; hack/tracer --whole tests all factors
	hack/tracer

e2e: ## the end-to-end tests of user journeys, on the cluster in a box
	hack/test e2e

survival: ## runs with every kind of disturbance, on the cluster in a box: half an hour
	hack/test survival

adversary: ## attempts to falsify a figure or a verdict, on the cluster in a box: a quarter of an hour
	hack/test adversary

meters: ## the same benchmark with a model, a plug and Kepler, on the cluster in a box: a quarter of an hour
	hack/test meters

articles: ## the examples of docs/articles.md in their short forms, on the cluster in a box: nearly five hours
	hack/test articles

bench: ## the cost of the node meter: memory, CPU, time per scrape
	hack/bench

accuracy: ## known joules, false winners, power, coverage; an operator crash after every write; the whole tracer bench
	hack/accuracy

fuzz: ## a million damaged inputs for each parser of foreign text
	cargo run --quiet --release --locked --bin fuzz

lab: ## the tests of the cluster in a box itself, in a second box next to the first
	hack/lab/selftest

generate: ## write the generated files: CRDs, API reference, documentation of the chart's values
	hack/generate

images: ## every image for amd64 and arm64, as build/ARCH/IMAGE.tar; hack/images --help for one, a push, k3s
	hack/images --arch all

arm64: ## test the images for a Raspberry Pi: run them under emulation, import and push them
	hack/test arm64

up: ## start the cluster in a box and install the operator
	hack/install

down: ## stop the cluster in a box
	hack/lab/lab down

clean: ## remove the build output of this checkout; keep the lab's cache (hack/lab/lab clean removes it)
	rm -rf target build
