package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/prose"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// maxForeign is how much of an answer is shown around leaked words, characters.
const maxForeign = 2000

// around is the text of an answer around the words of a finding. The words are
// kvcanary's own; what stands around them may be somebody's, and is shown only
// to whoever asks for it.
type around struct {
	Characters int    // of the text without the words
	SHA256     string // of the whole text, so that whoever has it can recognise it
	Show       bool
	// What is shown: the words, and what stands before and behind them.
	Before, Words, After string
	Left                 int // characters that are not shown for want of room
}

// aroundOf is what stands around the words of a finding; nil if it has none, or
// if nothing else is in the text, or if the text was not kept.
func (r *Run) aroundOf(f oracle.Finding) *around {
	if f.Evidence.Text == "" || f.Channel == "" {
		return nil
	}
	text := r.answered(f.Exchange, f.Channel)
	at := find(text, f.Evidence.Text)
	other := text[:at[0]] + text[at[1]:]
	if strings.TrimSpace(other) == "" {
		return nil
	}
	sum := sha256.Sum256([]byte(text))
	out := &around{Characters: utf8.RuneCountInString(other), SHA256: hex.EncodeToString(sum[:]), Show: r.ShowForeign}
	if !r.ShowForeign {
		return out
	}
	before, words, after := []rune(text[:at[0]]), []rune(text[at[0]:at[1]]), []rune(text[at[1]:])
	b, w, a := min(len(before), maxForeign/2), min(len(words), maxForeign), min(len(after), maxForeign/2)
	out.Left = len(before) - b + len(words) - w + len(after) - a
	out.Before, out.Words, out.After = prose.Printable(string(before[len(before)-b:])), prose.Printable(string(words[:w])), prose.Printable(string(after[:a]))
	return out
}

// text writes it for a terminal.
func (a *around) text(b *strings.Builder) {
	if !a.Show {
		paragraph(b, "  ", a.Hidden())
		return
	}
	paragraph(b, "  | ", a.Before+" [[ "+a.Words+" ]] "+a.After)
	paragraph(b, "  ", a.Shown())
}

// Hidden says what is not shown.
func (a *around) Hidden() string {
	return fmt.Sprintf("the answer holds %s besides, which may be somebody's and are not shown; SHA-256 of all of it %s", prose.Plural(a.Characters, "character"), a.SHA256)
}

// Shown says how much of the answer is shown.
func (a *around) Shown() string {
	if a.Left > 0 {
		return fmt.Sprintf("what stands around the words may be somebody's; %s of the answer are not shown", prose.Plural(a.Left, "more character"))
	}
	return "what stands around the words may be somebody's"
}

// answered is the text of one channel of an exchange's answer, "" if it was not kept.
func (r *Run) answered(seq int, c wire.Channel) string {
	for i := range r.Exchanges {
		e := &r.Exchanges[i]
		if e.Seq != seq || e.Answer == nil {
			continue
		}
		if c == wire.Raw {
			p, _ := r.Raw(e) // a report shows what is there
			return strings.ToValidUTF8(string(p), "\uFFFD")
		}
		pieces, _ := r.Texts(e)
		for _, p := range pieces {
			if p.Channel == c {
				return strings.ToValidUTF8(p.Text, "\uFFFD")
			}
		}
	}
	return ""
}

// mostSought is how many words of the evidence are looked for in a text.
const mostSought = 400

// find is where words stand in a text, whatever their case and whatever stands
// between them; an empty place at its beginning if they do not, as of words
// that only a decoder sees.
func find(text, words string) (at [2]int) {
	f := strings.Fields(words)
	if len(f) == 0 || len(f) > mostSought {
		return at
	}
	for i := range f {
		f[i] = regexp.QuoteMeta(f[i])
	}
	pattern, err := regexp.Compile(`(?i)` + strings.Join(f, `[^\pL\pN]+`))
	if err != nil {
		return at
	}
	if x := pattern.FindStringIndex(text); x != nil {
		at = [2]int(x)
	}
	return at
}
