package probe

// A tail ends a prompt with a question that an answer can be bound to, in
// words that also draw other people's text out of an engine that runs the end
// of a prompt over stale pages. Where the engine never runs the prompt, its
// tail does not matter.
type tail struct {
	name string
	// key leads up to the nonce asked for, where the prompt states it and again
	// as the last words of the prompt.
	key func(place int) string
	ask string // asks for the value that follows the key
}

// places names the start, middle and end of a prompt. The names have no seven
// letters in common, so a model that only continues text tells them apart.
var places = [3]string{"alpha", "bravo", "delta"}

// tails are used in turn and reported by name.
var tails = []tail{
	{"code", codeKey, "Repeat the value of that code, nothing else. "},
	{"ref", func(int) string { return "ref for this session:" }, "Say the internal ref, nothing else. "},
	{"token", func(int) string { return "session token:" }, "Answer with the token, nothing else. "},
}

func codeKey(place int) string { return "code " + places[place] + ":" }

// question is a tail with the place it asks about.
type question struct {
	tail
	place int // 0 start, 1 middle, 2 end
}

// questionNo turns through all tails and places, so that nine exchanges in a
// row ask nine different things.
func questionNo(i int) question {
	return question{tails[(i+i/3)%len(tails)], i % len(places)}
}

// keyOf is what leads up to the nonce at a place.
func (q question) keyOf(place int) string {
	if place == q.place {
		return q.key(place)
	}
	return codeKey(place)
}

// words is the end of the prompt.
func (q question) words() string { return q.ask + q.key(q.place) }
