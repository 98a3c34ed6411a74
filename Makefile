# `make help` lists the targets. The work is done by scripts in hack/, which can also be run by hand.
.DEFAULT_GOAL := help
.PHONY: help arm64 bench demo test lint unit tracer e2e survival adversary meters network gitops release-test upgrade-test articles accuracy fuzz report-picture coverage mutants supply-chain compat scale lab generate images up down clean

help: ## list the targets: at once
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' Makefile

demo: ## run examples/rust-vs-python.yaml in the cluster in a box: ten minutes; ARGS="--context NAME …" uses your own cluster
	hack/demo $(ARGS)

test: ## run all tests that CI runs, end-to-end tests in the cluster in a box included: about 40 minutes
	hack/test

lint: ## check with rustfmt, clippy, gofmt, go vet, shellcheck, ruff and Vale: half a minute if dependencies are built
	hack/test lint

unit: ## run the tests that need no cluster: 8 minutes if dependencies are built
	hack/test unit

tracer: ## prove the energy figures, short form: about two minutes if mutants are built; hack/tracer --whole has all factors
	hack/tracer

e2e: ## run the end-to-end tests in the cluster in a box: about 25 minutes
	hack/test e2e

survival: ## disturb a run in every way, in the cluster in a box: half an hour
	hack/test survival

adversary: ## try to falsify a figure or a verdict, in the cluster in a box: a quarter of an hour
	hack/test adversary

meters: ## run one benchmark with a power model, a plug and Kepler, in the cluster in a box: a quarter of an hour
	hack/test meters

network: ## run benchmarks under NetworkPolicies that kube-router enforces, in the cluster in a box: ten minutes, and five to build it
	hack/test network

gitops: ## test the gates with Flux, Argo CD, Argo Rollouts, Flagger and Helm 4, in the cluster in a box: 45 minutes, and ten minutes to build them
	hack/test gitops

release-test: ## make a release in a local registry, then install and upgrade from it in the cluster in a box: half an hour with the binaries built
	hack/test release

upgrade-test: ## upgrade from the chart and the images of an old commit, in the cluster in a box: 12 minutes with the old images built
	hack/test upgrade

articles: ## run all examples in their short forms, in the cluster in a box: about five hours
	hack/test articles

bench: ## measure memory, CPU and scrape time of the node meter: samples for 30 s, then scrapes
	hack/bench

accuracy: ## check joules, false winners, power, coverage (6 minutes), then the operator killed after every write, and hack/tracer --whole
	hack/accuracy

fuzz: ## send a million damaged inputs to each parser of foreign text: 12 minutes for three parsers
	cargo run --quiet --release --locked --bin fuzz

report-picture: ## write the picture at the top of the README from a kept demo: seconds after the build
	hack/report-picture

coverage: ## print the share of lines that the unit tests execute: a quarter of an hour the first time
	hack/coverage

mutants: ## mutate the changed lines and expect failing unit tests: two minutes per mutant; hack/mutants --help
	hack/mutants

supply-chain: ## check licences, duplicates, sources and known vulnerabilities of crates and Go programs: five minutes the first time
	hack/supply-chain

compat: ## test the operator with the API servers of the oldest and the newest Kubernetes: minutes per version the first time
	hack/compat

scale: ## print what a thousand benchmarks cost the API server and the operator: ten minutes
	hack/scale

lab: ## test the cluster in a box itself, in a second box: minutes
	hack/lab/selftest

generate: ## write the CRDs, the API reference and the chart's documented values: seconds after the build
	hack/generate

images: ## build every image for amd64 and arm64 as build/ARCH/IMAGE.tar: minutes; hack/images --help: one architecture, push, k3s
	hack/images --arch all

arm64: ## run, import and push the images for a Raspberry Pi under emulation: 25 minutes the first time
	hack/test arm64

up: ## start the cluster in a box and install the operator: a minute; half an hour the first time
	hack/install

down: ## end the cluster in a box: seconds
	hack/lab/lab down

clean: ## remove the build results of this checkout: seconds; hack/lab/lab clean removes the lab's cache
	rm -rf target build
