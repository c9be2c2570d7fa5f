package model

import (
	"bytes"
	"strings"
	"testing"
)

func TestCacheOnGivenMemory(t *testing.T) {
	for _, test := range []struct {
		bytes, pages, pageSize int
		problem                string
	}{
		{CacheBytes(3, 16), 3, 16, ""},
		{CacheBytes(3, 16) + 1, 3, 16, ""},
		{CacheBytes(3, 16) - 1, 3, 16, "needs 19200 bytes, got 19199"},
		{100, 0, 16, "at least 1"},
		{100, 1, 0, "at least 1"},
	} {
		c, err := NewCacheOn(make([]byte, test.bytes), test.pages, test.pageSize)
		switch {
		case test.problem == "" && err != nil:
			t.Errorf("%+v: %v", test, err)
		case test.problem == "" && (c.Pages() != test.pages || c.PageSize() != test.pageSize || c.PageBytes() != 400*test.pageSize):
			t.Errorf("%+v: made %d pages of %d tokens, %d bytes", test, c.Pages(), c.PageSize(), c.PageBytes())
		case test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)):
			t.Errorf("%+v: error %v, want %q", test, err, test.problem)
		}
	}
}

// TestPagesMove: pages carry all that the model knows of a prompt. Copied to another cache, at
// other places, they give the same answer; cleared, none.
func TestPagesMove(t *testing.T) {
	m := New()
	from, to := NewCache(8, 16), NewCache(12, 16)
	prompt := Template(nil, []Message{{RoleUser, "code alpha: 77af\nand so on\ncode alpha:"}})
	here, there := Table{7, 1, 4}, Table{11, 0, 5}
	m.Write(from, here, 0, prompt)
	for i := range here {
		copy(to.Page(there[i]), from.Page(here[i]))
	}
	last := len(prompt) - 1
	want, got := m.Logits(from, here, last, Assistant, 1), m.Logits(to, there, last, Assistant, 1)
	if got != want || got.Greedy() != '7' {
		t.Errorf("moved pages say %q, before %q", got.Greedy(), want.Greedy())
	}
	for _, p := range there {
		to.Zero(p)
	}
	if !bytes.Equal(to.mem, make([]byte, len(to.mem))) {
		t.Error("zeroed pages hold something")
	}
	if got := m.Logits(to, there, last, Assistant, 1); got.Greedy() == '7' {
		t.Error("zeroed pages still answer")
	}
}

func TestOutsideTheTableIsABug(t *testing.T) {
	m := New()
	c := NewCache(4, 16)
	for name, f := range map[string]func(){
		"write past the table": func() { m.Write(c, Table{0}, 10, make([]byte, 7)) },
		"write before it":      func() { m.Write(c, Table{0}, -1, make([]byte, 1)) },
		"read past the table":  func() { m.Logits(c, Table{0}, 16, 'x', 1) },
	} {
		func() {
			defer func() {
				if r, _ := recover().(string); !strings.HasPrefix(r, "kvcanary: internal error: ") {
					t.Errorf("%s: %v", name, r)
				}
			}()
			f()
		}()
	}
}
