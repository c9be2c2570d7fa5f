# Slow forms of the checks. CI runs the short ones with go test ./...
.PHONY: help test ci sweep power innocent speed guard-speed soak chaos states fuzz demo-full spec-full mutants defences

help: ## list what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' Makefile

test: ## the tests, as in the README
	go test ./...

ci: ## all that CI runs
	.ci/run

sweep: ## recall 200 of 200 up to 64k tokens, the incident at full scale, a gigabyte of ordinary text, a million canaries
	go test -count=1 -timeout 60m ./internal/lab -run 'RecallSweep|FullScale' -sweep
	go test -count=1 -timeout 60m ./internal/lab/model -run 'Recall|Incident' -trials 200
	KVCANARY_LONG=1 go test -count=1 -timeout 60m ./canary

MATRIX = go run ./cmd/kvcanary matrix --format json
power: ## docs/power.json and what is made of it, measured anew: an hour or two
	$(MATRIX) --trials 8 > power-all.json
	$(MATRIX) --from power-all.json --likelihoods internal/diagnose/likelihoods.json > /dev/null
	$(MATRIX) --trials 200 --best > power-best.json
	$(MATRIX) --trials 3 --defences all > power-defences.json
	$(MATRIX) --from power-all.json --from power-best.json --from power-defences.json --document docs/power.md > docs/power.json

innocent: ## 2,000 campaigns against endpoints that only look bad
	go test -count=1 -timeout 120m ./internal/matrix -run '^TestInnocentEndpointsAreNotAccused$$' -v -args -clean 2000

speed: ## the figures of docs/performance.md
	go test ./canary -run '^$$' -bench . -benchtime 2s
	go test ./internal/wire -run '^$$' -bench . -benchtime 2s
	go test ./internal/lab/model -run '^$$' -bench .
	go test ./internal/lab -run '^$$' -bench Engine -benchtime 3x
	go test ./internal/lab -run '^$$' -bench Tags -benchtime 15x
	go test ./internal/lab/node -run '^$$' -bench Step -benchtime 2s
	go test ./pagetag -run '^$$' -bench . -benchtime 2s

GUARD_SPEED = go test ./internal/guard/speed -count=1 -timeout 60m -v
guard-speed: ## the guard beside direct requests, ReverseProxy and nginx, which must be installed
	@dir=$$(mktemp -d) && trap 'rm -r $$dir' EXIT && go build -o $$dir/kvcanary ./cmd/kvcanary && \
	$(GUARD_SPEED) -run 'Speed|Streams|Prompt' -args -guard $$dir/kvcanary -nginx $$(command -v nginx) -speed 1s -rounds 9 -streams 1000 -awake

soak: ## the guard under everything that goes wrong, for half an hour: nothing may grow
	@dir=$$(mktemp -d) && trap 'rm -r $$dir' EXIT && go build -o $$dir/kvcanary ./cmd/kvcanary && \
	$(GUARD_SPEED) -run Soak -args -guard $$dir/kvcanary -soak 30m -pause 300ms

chaos: ## 100,000 requests through the guard, with everything going wrong that can
	go test ./internal/guard -count=1 -timeout 60m -run TestChaos -v -args -chaos 100000

states: ## states a second of the explorer and of Spin, in turns
	spec/beside.sh

fuzz: ## every fuzz target for half a minute
	@for p in $$(go list ./...); do for f in $$(go test -list '^Fuzz' $$p | grep ^Fuzz); do \
	  echo "$$p $$f"; go test $$p -run '^$$' -fuzz "^$$f$$" -fuzztime 30s || exit 1; done; done

demo-full: ## the demo with the incident's own numbers
	go run ./cmd/kvcanary demo --scale full

spec-full: ## every search of the Promela model
	spec/run.sh --full

mutants: ## every mutant of the handoff, explored until it is found: some minutes
	go test ./internal/explore -timeout 60m -run '^TestMutants$$' -args -mutants=-1

defences: ## every cell of the table of defences against faults
	go test ./internal/explore -timeout 30m -run '^TestTable$$' -args -table
