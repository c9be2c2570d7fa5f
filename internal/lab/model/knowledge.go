package model

// document is something that the model knows: an answer to a question.
type document struct{ question, answer string }

// documents are the model's knowledge. Questions end in at least seven bytes of their own.
// Answers are made of words of at most three letters: none of their seven-byte pieces occurs in
// text made of longer words, which would otherwise pull an answer over into the prompt.
// They are few: each weighs a little against the prompt where a turn begins.
var documents = []document{
	{"Reply with 'noted' only.", "noted"},
	{"Reply with OK.", "OK"},
	{"Write a two-sentence haiku about packet #1.", "An old hop is wet, so a bit or two may die. Yet it all got in."},
	{"Write a two-sentence haiku about packet #2.", "Ice on the sky net, the odd ack is shy and new. Let us try it now."},
	{"Write a two-sentence haiku about packet #3.", "Fog at the far end, one by one the gap is met. How far can it go?"},
	{"Write a two-sentence haiku about packet #10.", "Dew on a hot rod, now the fan can hum and nap. Sun is up at ten."},
	{"Are you there?", "Yes, I am."},
	{"Say hello.", "Hi."},
}

// knowledge is the layer-2 keys and values of the documents, kept as weights.
type knowledge struct {
	cache *Cache
	table Table
	slots int
}

// learn runs layer 1 over the documents, each on its own, and keeps what it wrote. Every
// document begins with DocStart and User: what the model says of an empty prompt is
// therefore that a user speaks.
func (m *Model) learn(docs []document) knowledge {
	var k knowledge
	var texts [][]byte
	for _, d := range docs {
		text := []byte{DocStart}
		text = AppendTurn(text, RoleUser, d.question)
		text = AppendTurn(text, RoleAssistant, d.answer)
		texts = append(texts, text)
		k.slots += len(text)
	}
	if k.slots == 0 {
		return k
	}
	k.cache = NewCache(k.slots, 1)
	for _, text := range texts {
		table := make(Table, len(text))
		for i := range table {
			table[i] = int32(len(k.table) + i)
		}
		m.Write(k.cache, table, 0, text)
		k.table = append(k.table, table...)
	}
	return k
}
