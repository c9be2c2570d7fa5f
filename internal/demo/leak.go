package demo

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/model"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/report"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// Leak is an answer that leaked, as the page of the demo draws it. The page
// map comes from the engine's trace, which the prober never sees.
type Leak struct {
	Map    *report.PageMap
	Answer string
	Prompt string // how the prompt began and ended
}

// commit is the state of the pages that a room's answer began with.
type commit struct {
	table   []int32
	origins []handoff.Origin
}

// drawLeak looks up in the trace which pages the leaking answer was made of.
func (st *stage) drawLeak(r *campaign.Result, trace string) (*Leak, error) {
	e := st.first(wire.Over)
	if e == nil || longestLeak(r, e.Seq) == nil {
		return nil, nil
	}
	names, commits, err := readTrace(trace)
	if err != nil {
		return nil, err
	}
	room := names[e.Answer.ID]
	c, ok := commits[room]
	if !ok {
		return nil, fmt.Errorf("the trace does not know request %s", e.Answer.ID)
	}
	d := &drawing{stage: st, names: names, room: room, commit: c}
	m := &report.PageMap{Request: e.Answer.ID, Sent: e.SentTokens, PageSize: st.scene.lab.PageSize}
	if e.Answer.Usage != nil {
		m.Reported = e.Answer.Usage.Prompt
	}
	m.Pages = d.pages(e.SentTokens)
	for _, f := range r.Findings {
		if f.Kind == oracle.Leak && f.Exchange == e.Seq {
			if err := d.leak(m, f); err != nil {
				return nil, err
			}
		}
	}
	prompt, err := st.excerpt(e.Seq)
	if err != nil {
		return nil, err
	}
	return &Leak{Map: m, Answer: e.Answer.Text(wire.Content), Prompt: prompt}, nil
}

// readTrace returns the rooms by what the API calls them, and the pages that
// each room's answer began with.
func readTrace(path string) (map[string]handoff.Room, map[handoff.Room]commit, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	names, commits := map[string]handoff.Room{}, map[handoff.Room]commit{}
	var origins *handoff.Origins
	err = handoff.ReadTrace(f, func(r handoff.Record) error {
		switch {
		case r.Config != nil:
			origins = handoff.NewOrigins(*r.Config)
			origins.OnCommit = func(room handoff.Room, table []int32, o []handoff.Origin) {
				commits[room] = commit{table, o}
			}
		case origins == nil:
			return fmt.Errorf("it does not begin with the engine's setup")
		case r.Name != "":
			names[r.Name] = r.In.Room
		case !origins.Step(r):
			return fmt.Errorf("decode did what its state machine does not do")
		}
		return nil
	})
	return names, commits, err
}

// drawing turns rooms and pages into what a person can follow.
type drawing struct {
	*stage
	names  map[string]handoff.Room
	room   handoff.Room
	commit commit
}

// pages are those that were reserved for the prompt; the answer's own are left out.
func (d *drawing) pages(sent int) []report.MapPage {
	size := d.scene.lab.PageSize
	n := min(len(d.commit.table), (sent+size-1)/size)
	out := make([]report.MapPage, n)
	for i := range out {
		o := d.commit.origins[i]
		out[i] = report.MapPage{Index: i, Page: int(d.commit.table[i]), Own: o.Room == d.room, Origin: o.Index}
		if !out[i].Own && o.Room != 0 {
			out[i].Owner = d.owner(o.Room)
		}
	}
	return out
}

func (d *drawing) owner(room handoff.Room) string {
	for i := range d.seen {
		if e := &d.seen[i]; d.names[e.Answer.ID] == room {
			return fmt.Sprintf("exchange %d, tenant %s", e.Seq, e.Tenant)
		}
	}
	return fmt.Sprintf("request %d", room)
}

// leak finds the pages that hold a finding's words, wherever they stand in the
// prompt of the exchange that planted them, and outlines them.
func (d *drawing) leak(m *report.PageMap, f oracle.Finding) error {
	l := report.MapLeak{Word: f.Evidence.Offset, Words: f.Evidence.Words, Text: f.Evidence.Text}
	if f.FromExchange != nil {
		source := &d.seen[*f.FromExchange]
		l.Owner = fmt.Sprintf("exchange %d, tenant %s", source.Seq, source.Tenant)
		tokens, err := source.tokens()
		if err != nil {
			return err
		}
		held := holding(tokens, []byte(f.Evidence.Text), m.PageSize)
		room := d.names[source.Answer.ID]
		for i := range m.Pages {
			if o := d.commit.origins[i]; o.Room == room && held[o.Index] {
				m.Pages[i].Leaked = true
				l.Pages = append(l.Pages, i)
			}
		}
	}
	m.Leaks = append(m.Leaks, l)
	return nil
}

// holding are the pages of a prompt, by place, that hold a part of text.
func holding(tokens, text []byte, pageSize int) map[int]bool {
	held := map[int]bool{}
	for at := 0; ; at++ {
		i := bytes.Index(tokens[at:], text)
		if i < 0 || len(text) == 0 {
			return held
		}
		at += i
		for page := at / pageSize; page <= (at+len(text)-1)/pageSize; page++ {
			held[page] = true
		}
	}
}

// tokens are what the lab made of the prompt, one byte a token.
func (s *seen) tokens() ([]byte, error) {
	messages := make([]model.Message, len(s.messages))
	for i, m := range s.messages {
		text, err := io.ReadAll(m.Text.Open())
		if err != nil {
			return nil, err
		}
		messages[i] = model.Message{Role: m.Role, Text: string(text)}
	}
	return model.Template(nil, messages), nil
}

// excerpt is how a prompt began and ended, bytes that are no text as spaces.
func (st *stage) excerpt(seq int) (string, error) {
	tokens, err := st.seen[seq].tokens()
	if err != nil {
		return "", err
	}
	const head, tail = 360, 160
	for i, b := range tokens {
		if b < ' ' {
			tokens[i] = '\n'
		}
	}
	if len(tokens) <= head+tail {
		return string(bytes.TrimSpace(tokens)), nil
	}
	return string(bytes.TrimSpace(tokens[:head])) + "\n...\n" + string(bytes.TrimSpace(tokens[len(tokens)-tail:])), nil
}
