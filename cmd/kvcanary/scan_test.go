package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/kvcanary/kvcanary/canary"
)

// What a canary may be dressed as in a file, a word at a time.
func TestScanFindsCanariesInPieces(t *testing.T) {
	coder := canary.New(canary.Key{7})
	id := canary.MakeID(1, 2, 3)
	b, err := io.ReadAll(coder.Words(id, 5, 12))
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(b))
	each := func(format string) string {
		var out strings.Builder
		for _, w := range words {
			fmt.Fprintf(&out, format, w)
		}
		return out.String()
	}
	var wide []byte
	for _, u := range utf16.Encode([]rune("\ufeff" + strings.Join(words, " "))) {
		wide = binary.LittleEndian.AppendUint16(wide, u)
	}
	for name, c := range map[string]struct{ text, view string }{
		"plain":             {strings.Join(words, " "), ""},
		"UTF-16":            {string(wide), "markup"},
		"colours":           {each("\x1b[32m%s\x1b[0m "), "markup"},
		"tags":              {each("<b>%s</b>"), "markup"},
		"events":            {each("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%s\"}}]}\n\n"), "joined"},
		"events with names": {each("event: x\ndata: {\"delta\":\"%s \"}\n\n"), "joined"},
		"tokens":            {"[" + strings.TrimSuffix(each(`{"token":"%s","logprob":-0.5},`), ",") + "]", "joined"},
		"lines of JSON":     {each("{\"response\":\" %s\",\"done\":false}\n"), "joined"},
	} {
		var got []sighting
		f := fileScan{coder: coder, name: name, show: func(s sighting) { got = append(got, s) }, seen: map[canary.ID]bool{}}
		if err := f.scan(strings.NewReader(c.text), true); err != nil {
			t.Fatal(err)
		}
		if len(got) != 1 || f.found != 1 || got[0].View != c.view || got[0].Word != 5 || got[0].Words != 12 || got[0].Tenant != 2 || got[0].End > int64(len(c.text)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
