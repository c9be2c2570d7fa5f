package lab

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets the test binary stand in for kvcanary lab-node.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "lab-node" {
		if err := RunNode(context.Background(), os.Stdin); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(4)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestProcSmoke(t *testing.T) {
	e, err := StartProcesses(Small(), os.Args[0], "lab-node")
	if err != nil {
		t.Fatal(err)
	}
	for ev := range e.Submit(t.Context(), Request{Tokens: []byte("\x01Reply with 'noted' only.\x02"), MaxTokens: 100}) {
		t.Logf("%+v %+v %+v", ev, ev.Done, ev.Error)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
