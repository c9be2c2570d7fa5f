package campaign

import (
	"fmt"
	"net/http"
	"path/filepath"
	"unicode/utf8"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// kept is a line of the file of exchanges: the exchange, and what it takes to
// go on behind it in another process.
type kept struct {
	wire.Exchange
	Requests int   `json:"requests"`         // made for it, those sent again included
	Counts   []int `json:"counts,omitempty"` // what the target's tokenizer said of its prompt, in order; -1 for nothing
}

// heard is what an answer carried besides its raw bytes, as the client read it.
type heard struct {
	Header http.Header  `json:"header,omitempty"`
	Pieces []heardPiece `json:"pieces,omitempty"`
}

// heardPiece is a wire.Piece; Bytes is its text where that is no UTF-8.
type heardPiece struct {
	Channel wire.Channel `json:"channel"`
	Text    string       `json:"text,omitempty"`
	Bytes   []byte       `json:"bytes,omitempty"`
}

func heardFile(seq int) string { return filepath.Join(heardFolder, fmt.Sprintf("%06d.json", seq)) }

func heardOf(a *wire.Answer) heard {
	h := heard{Header: a.Header}
	for _, p := range a.Pieces {
		if utf8.ValidString(p.Text) {
			h.Pieces = append(h.Pieces, heardPiece{Channel: p.Channel, Text: p.Text})
		} else {
			h.Pieces = append(h.Pieces, heardPiece{Channel: p.Channel, Bytes: []byte(p.Text)})
		}
	}
	return h
}

// hear reads back what an answer carried.
func (k *kept) hear(dir string) error {
	var h heard
	if err := readJSON(dir, heardFile(k.Seq), &h); err != nil {
		return fmt.Errorf("read what exchange %d was answered: %w", k.Seq, err)
	}
	k.Answer.Header, k.Answer.Pieces = h.Header, nil
	for _, p := range h.Pieces {
		k.Answer.Pieces = append(k.Answer.Pieces, wire.Piece{Channel: p.Channel, Text: p.Text + string(p.Bytes)})
	}
	return nil
}
