# Slow forms of the checks. CI runs the short ones with go test ./...

.PHONY: spec-full
spec-full:
	spec/run.sh --full

# Every mutant of the handoff is explored until it is found: some minutes.
.PHONY: mutants
mutants:
	go test ./internal/explore -timeout 60m -run '^TestMutants$$' -args -mutants=-1

# Every cell of the table of defences against faults, compared with the one that is kept.
.PHONY: defences
defences:
	go test ./internal/explore -timeout 30m -run '^TestTable$$' -args -table
