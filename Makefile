# Slow forms of the checks. CI runs the short ones with go test ./...

.PHONY: spec-full
spec-full:
	spec/run.sh --full
