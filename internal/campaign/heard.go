package campaign

import (
	"errors"
	"fmt"
	"io/fs"
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
	Lost     int   `json:"lost,omitempty"`   // tokens of requests whose connection broke before any answer
	Counts   []int `json:"counts,omitempty"` // what the target's tokenizer said of its prompt, in order; -1 for nothing
}

// heard is what an answer carried besides its raw bytes, as the client read it.
type heard struct {
	Header http.Header  `json:"header,omitempty"`
	Pieces []heardPiece `json:"pieces,omitempty"`
	Joined []heardPiece `json:"joined,omitempty"`
}

// heardPiece is a wire.Piece or a wire.Strand; Bytes is its text where that is no UTF-8.
type heardPiece struct {
	Cuts    []int        `json:"cuts,omitempty"`
	Channel wire.Channel `json:"channel"`
	Text    string       `json:"text,omitempty"`
	Bytes   []byte       `json:"bytes,omitempty"`
}

func heardFile(seq int) string { return filepath.Join(heardFolder, fmt.Sprintf("%06d.json", seq)) }

func heardOf(a *wire.Answer) heard {
	h := heard{Header: a.Header}
	for _, p := range a.Pieces {
		h.Pieces = append(h.Pieces, pieceOf(p.Channel, p.Text, nil))
	}
	for _, s := range a.Joined {
		h.Joined = append(h.Joined, pieceOf(s.Channel, s.Text, s.Cuts))
	}
	return h
}

func pieceOf(c wire.Channel, text string, cuts []int) heardPiece {
	if utf8.ValidString(text) {
		return heardPiece{Channel: c, Text: text, Cuts: cuts}
	}
	return heardPiece{Channel: c, Bytes: []byte(text), Cuts: cuts}
}

// hear reads back what an answer carried.
func (k *kept) hear(dir string) error {
	var h heard
	if err := readJSON(dir, heardFile(k.Seq), &h); err != nil {
		return fmt.Errorf("read what exchange %d was answered: %w", k.Seq, err)
	}
	k.Answer.Header, k.Answer.Pieces, k.Answer.Joined = h.Header, nil, nil
	for _, p := range h.Pieces {
		k.Answer.Pieces = append(k.Answer.Pieces, wire.Piece{Channel: p.Channel, Text: p.Text + string(p.Bytes)})
	}
	for _, p := range h.Joined {
		k.Answer.Joined = append(k.Answer.Joined, wire.Strand{Channel: p.Channel, Text: p.Text + string(p.Bytes), Cuts: p.Cuts})
	}
	return nil
}

// Texts are what the channels of an exchange's answer carried, as the client
// read them; none if that was not kept.
func (l *Loaded) Texts(e *wire.Exchange) ([]wire.Piece, error) {
	k := kept{Exchange: wire.Exchange{Seq: e.Seq, Answer: &wire.Answer{}}}
	if err := k.hear(l.Path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return k.Answer.Pieces, nil
}
