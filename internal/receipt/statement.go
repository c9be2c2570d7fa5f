package receipt

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Statement is an in-toto statement, version 1.
type Statement struct {
	Type          string          `json:"_type"`
	Subject       []Resource      `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate"`
}

// Resource is a file by its digest.
type Resource struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"` // "sha256" in hexadecimal
}

const statementType = "https://in-toto.io/Statement/v1"

// The predicates that kvcanary writes.
const (
	PlanPredicate     = "https://github.com/kvcanary/kvcanary/plan/v1"
	RunPredicate      = "https://in-toto.io/attestation/test-result/v0.1"
	DecisionPredicate = "https://github.com/kvcanary/kvcanary/decision/v1"
	FindingPredicate  = "https://github.com/kvcanary/kvcanary/finding/v1"
	SVRPredicate      = "https://in-toto.io/attestation/svr/v0.2"
)

// TestResult is the predicate of a run that has ended.
type TestResult struct {
	Result        string     `json:"result"` // PASSED, WARNED or FAILED
	Configuration []Resource `json:"configuration"`
	PassedTests   []string   `json:"passedTests,omitempty"`
	WarnedTests   []string   `json:"warnedTests,omitempty"`
	FailedTests   []string   `json:"failedTests,omitempty"`
	Verdict       string     `json:"verdict"`
	Ended         time.Time  `json:"ended"`
}

// Plan is the predicate of a run before its first request.
type Plan struct {
	Reason  string    `json:"reason,omitempty"` // who asked, and why
	Sealed  time.Time `json:"sealed"`
	Version string    `json:"version"` // of kvcanary
}

// Decision is the predicate of what a person has decided.
type Decision struct {
	Decision string    `json:"decision"`
	Because  string    `json:"because"`
	By       string    `json:"by,omitempty"`
	Sealed   time.Time `json:"sealed"`
}

// Finding is the predicate of what a guard saw in an answer.
type Finding struct {
	Guard   string    `json:"guard"`   // kvcanary and its version
	Request string    `json:"request"` // id that the guard gave it
	Kinds   []string  `json:"kinds"`
	Seen    time.Time `json:"seen"`
	Sealed  time.Time `json:"sealed"`
}

// Verification is the predicate of a preflight: a simple verification result.
type Verification struct {
	Verifier    map[string]string `json:"verifier"` // "id"
	TimeCreated time.Time         `json:"timeCreated"`
	Properties  []string          `json:"properties"`
}

// statement makes the bytes of a statement.
func statement(predicateType string, subject []Resource, predicate any) ([]byte, error) {
	if len(subject) == 0 {
		return nil, errors.New("a receipt has to be about something: no file is named")
	}
	p, err := json.Marshal(predicate)
	if err != nil {
		panic("kvcanary: internal error: " + err.Error())
	}
	out, err := json.Marshal(Statement{statementType, subject, predicateType, p})
	if err != nil {
		panic("kvcanary: internal error: " + err.Error())
	}
	return out, nil
}

// parseStatement reads a statement.
func parseStatement(p []byte) (Statement, error) {
	var s Statement
	if err := json.Unmarshal(p, &s); err != nil {
		return s, fmt.Errorf("this is no statement: %w", err)
	}
	if s.Type != statementType || len(s.Subject) == 0 {
		return s, errors.New("this is no in-toto statement of version 1 about anything")
	}
	return s, nil
}

// Digest is the SHA-256 of some bytes in hexadecimal.
func Digest(p []byte) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:])
}
