package api

// head is what every object of an answer begins with.
type head struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"` // seconds since 1970
	Model   string `json:"model"`
}

func (h head) as(object string) head {
	h.Object = object
	return h
}

// shape is how an API writes its answers.
type shape struct {
	prefix string // of the id
	chunk  string // object of a piece
	whole  func(head, string, generation) any
	piece  func(head, piece) any
}

// piece is a part of a streamed answer.
type piece struct {
	text  string
	first bool
	end   *generation // of the last one
}

// counted is the last chunk of a stream whose client asked for usage.
type counted struct {
	head
	Choices []struct{} `json:"choices"` // empty
	Usage   usage      `json:"usage"`
}

// ending is how a choice ended; null in pieces before the last.
type ending struct {
	Logprobs     *struct{} `json:"logprobs"` // always null
	FinishReason *string   `json:"finish_reason"`
	MatchedStop  *string   `json:"matched_stop"`
}

func endingOf(g *generation) (e ending) {
	if g == nil {
		return e
	}
	e.FinishReason = &g.finish
	if g.stop != "" {
		e.MatchedStop = &g.stop
	}
	return e
}

type chatMessage struct {
	Role             string    `json:"role"`
	Content          string    `json:"content"`
	ReasoningContent *string   `json:"reasoning_content"` // always null: the model does not reason
	ToolCalls        *struct{} `json:"tool_calls"`        // always null
}

type chatDelta struct {
	Role    string `json:"role,omitempty"`
	Content string `json:"content"`
}

type chatChoice struct {
	Index   int          `json:"index"`
	Message *chatMessage `json:"message,omitempty"`
	Delta   *chatDelta   `json:"delta,omitempty"`
	ending
}

type textChoice struct {
	Index int    `json:"index"`
	Text  string `json:"text"`
	ending
}

// result is an answer, or a piece of one, with its only choice.
type result[Choice any] struct {
	head
	Choices []Choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

var chatShape = shape{
	prefix: "chatcmpl-",
	chunk:  "chat.completion.chunk",
	whole: func(h head, text string, g generation) any {
		c := chatChoice{Message: &chatMessage{Role: "assistant", Content: text}, ending: endingOf(&g)}
		return result[chatChoice]{h.as("chat.completion"), []chatChoice{c}, &g.usage}
	},
	piece: func(h head, p piece) any {
		c := chatChoice{Delta: &chatDelta{Content: p.text}, ending: endingOf(p.end)}
		if p.first {
			c.Delta.Role = "assistant"
		}
		return result[chatChoice]{h, []chatChoice{c}, nil}
	},
}

var textShape = shape{
	prefix: "cmpl-",
	chunk:  "text_completion",
	whole: func(h head, text string, g generation) any {
		return result[textChoice]{h.as("text_completion"), []textChoice{{Text: text, ending: endingOf(&g)}}, &g.usage}
	},
	piece: func(h head, p piece) any {
		return result[textChoice]{h, []textChoice{{Text: p.text, ending: endingOf(p.end)}}, nil}
	},
}
