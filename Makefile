# make help tells what there is. Everything real is in hack/, so that it can be run by hand too.
.DEFAULT_GOAL := help
.PHONY: help arm64 bench demo test lint unit tracer e2e survival adversary meters articles accuracy fuzz lab generate images up down clean

help: ## what there is
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' Makefile

demo: ## a cluster in a box, the chart, examples/rust-vs-python.yaml, the verdict; ARGS="--context NAME …" for your own cluster
	hack/demo $(ARGS)

test: ## everything that CI runs, end to end on the cluster in a box included
	hack/test

lint: ## format, clippy, gofmt, go vet, shellcheck, chart lint
	hack/test lint

unit: ## the tests that need no cluster
	hack/test unit

tracer: ## the proof of the energy figures, short form; hack/tracer --whole has all factors
	hack/tracer

e2e: ## the user's journeys on the cluster in a box
	hack/test e2e

survival: ## a run that is disturbed in every way, on the cluster in a box: half an hour
	hack/test survival

adversary: ## ways to bend a figure or a verdict, tried on the cluster in a box: a quarter of an hour
	hack/test adversary

meters: ## the same benchmark with a model, a plug and through Kepler, on the cluster in a box: a quarter of an hour
	hack/test meters

articles: ## the examples of docs/articles.md in their short forms, on the cluster in a box: nearly five hours
	hack/test articles

bench: ## what the node meter costs: memory, CPU, time of a scrape
	hack/bench

accuracy: ## known joules, false winners, power, coverage; a death after every write; the whole tracer bench
	hack/accuracy

fuzz: ## a million damaged inputs for each parser of foreign text
	cargo run --quiet --release --locked --bin fuzz

lab: ## the cluster in a box tested by itself, in a second box beside
	hack/lab/selftest

generate: ## write what is generated: CRDs, API reference, the chart's documented values
	hack/generate

images: ## every image for amd64 and arm64, as build/ARCH/IMAGE.tar; hack/images --help for one, a push, k3s
	hack/images --arch all

arm64: ## images for a Raspberry Pi, run under emulation, imported and pushed
	hack/test arm64

up: ## start the cluster in a box with the operator in it
	hack/install

down: ## end the cluster in a box
	hack/lab/lab down

clean: ## remove what was built in this checkout; the lab's cache stays (hack/lab/lab clean)
	rm -rf target build
