package campaign

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// What was joined from the pieces of an answer is judged again when a run goes
// on, to the byte.
func TestJoinedTextsAreHeardAgain(t *testing.T) {
	a := served("noted")
	a.Joined = []wire.Strand{
		{Channel: wire.Reasoning, Text: "alphabravo", Cuts: []int{5}},
		{Channel: wire.Raw, Text: "no\xff\xfeted"},
	}
	dir := t.TempDir()
	b, err := json.Marshal(heardOf(a))
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, heardFile(3))
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	k := kept{Exchange: wire.Exchange{Seq: 3, Answer: &wire.Answer{}}}
	if err := k.hear(dir); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(k.Answer.Joined, a.Joined) || !reflect.DeepEqual(k.Answer.Pieces, a.Pieces) {
		t.Errorf("heard %+v", k.Answer)
	}
}
