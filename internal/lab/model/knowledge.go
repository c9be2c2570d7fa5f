package model

// document is something that the model knows: an answer to a question.
type document struct{ question, answer string }

// documents are the model's knowledge. Questions end in at least seven bytes of their own.
// Answers are made of words so short that none of their seven-byte pieces can occur in text
// made of words of four letters and more, which would otherwise pull an answer over into the
// prompt; and no two places in them share such a piece. They are few: each weighs a little
// against the prompt where a turn begins.
var documents = []document{
	{"Reply with 'noted' only.", "noted"},
	{"Reply with OK.", "OK"},
	{"Write a two-sentence haiku about packet #1.", "An ack is at sea; if it is up, so am I. Go on in to it."},
	{"Write a two-sentence haiku about packet #2.", "Is it of my own, or by us as we go up? To no log at all."},
	{"Write a two-sentence haiku about packet #3.", "Fog is on my bay; as to me, so is it to us. Go by it as I do."},
	{"Write a two-sentence haiku about packet #10.", "Dew on an ivy, so we hum at it or no. Go to an old ox."},
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
