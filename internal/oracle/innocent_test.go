package oracle_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// Text that is mixed up, about canaries, or made of their words, and is none
// of ours, whole and in pieces: an account of the incident with the script of
// it, the dictionary in its order, backwards and in any other.
func TestInnocentText(t *testing.T) {
	post, err := os.ReadFile("testdata/innocent/post.txt")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.FromSlash("../../canary/words.txt"))
	if err != nil {
		t.Fatal(err)
	}
	dictionary := strings.Fields(string(list))
	texts := map[string]string{
		"the post":            string(post),
		"the dictionary":      string(list),
		"the dictionary back": backwards(string(list)),
	}
	chance := rand.New(rand.NewPCG(2, 3))
	var random []string
	for range 200_000 {
		random = append(random, dictionary[chance.IntN(len(dictionary))])
	}
	texts["random words"] = strings.Join(random, " ")
	for name, text := range texts {
		w := newWorld(t)
		w.served(0)
		e := w.served(1, "content", text, "reasoning", text, "logprobs", text)
		e.Answer.Joined = []wire.Strand{strand(wire.Raw, strings.SplitAfter(text, " ")...)}
		for _, o := range oracle.All() {
			j := w.judgeWith(o.Name, func(c *oracle.Case) { c.RawBytes = func(*wire.Exchange) []byte { return []byte(text) } })
			if len(j.Findings)+len(j.Tests)+j.ControlHits > 0 || j.Unsure != "" {
				t.Errorf("%s: %s finds %+v", name, o.Name, j)
			}
		}
	}
}
