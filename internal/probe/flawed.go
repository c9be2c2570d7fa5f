package probe

import "github.com/kvcanary/kvcanary/internal/wire"

// A prompt may be refused behind the door for something else than its length, a
// picture that breaks off for instance, and an engine that lets a refused prompt
// live on does so whatever it was refused for. Such a prompt is short: nothing
// says that pages were reserved for it but that it is answered.

const (
	flawedTokens = 1024
	flawedEach   = 2
)

// flawedOnes are prompts with a picture whose file breaks off, of several
// tenants. A target that refuses them, or that has no pictures, does well.
func flawedOnes(e Env) []Send {
	var batch []Send
	for i := range flawedEach {
		s := send(wire.Unrelated, "broken picture", i%e.Tenants, capped(e, flawedTokens), e.MaxAnswer, questionNo(3*i))
		s.Image, s.Broken = e.Seed&^1023|uint64(512+i), true
		batch = append(batch, s)
	}
	return batch
}
