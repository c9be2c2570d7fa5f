package model

import "slices"

// adapter is a small change of the weights: the value matrix of layer 2 and the
// unembedding turn the letters around by as many places, so that the model reads
// its own KV as ever, and that of other weights as other letters. It also knows a
// document of its own.
type adapter struct {
	name  string
	turn  int // places in the alphabet
	knows document
}

var adapters = []adapter{
	{"ada", 5, document{"Which adapter are you?", "I am ada."}},
	{"ben", 11, document{"Which adapter are you?", "I am ben."}},
}

// Adapters are the names of what can be asked for in place of the bare model.
func Adapters() []string {
	var names []string
	for _, a := range adapters {
		names = append(names, a.name)
	}
	return names
}

// With is the model under an adapter, or itself for an empty name; nil if there is
// no such adapter. What it does not change is shared.
func (m *Model) With(name string) *Model {
	if name == "" {
		return m
	}
	i := slices.IndexFunc(adapters, func(a adapter) bool { return a.name == name })
	if i < 0 {
		return nil
	}
	a := adapters[i]
	changed := *m
	for v := range 256 {
		changed.outputs[v] = m.outputs[turned(byte(v), a.turn)]
		changed.turned[v] = turned(byte(v), a.turn)
	}
	changed.knowledge = changed.learn(append(slices.Clone(m.documents), a.knows))
	return &changed
}

// turned is a letter so many places on, around the end of the alphabet; other
// bytes stay.
func turned(v byte, places int) byte {
	switch {
	case v >= 'a' && v <= 'z':
		return 'a' + (v-'a'+byte(places))%26
	case v >= 'A' && v <= 'Z':
		return 'A' + (v-'A'+byte(places))%26
	}
	return v
}
