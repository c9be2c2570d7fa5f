package model

import (
	"testing"

	"pgregory.net/rapid"
)

func TestTemplate(t *testing.T) {
	tests := []struct {
		name     string
		messages []Message
		want     string
	}{
		{"nothing", nil, "\x02"},
		{"one turn", []Message{{RoleUser, "hi"}}, "\x01hi\x02"},
		{"system", []Message{{RoleSystem, "be brief"}, {RoleUser, "hi"}}, "\x01be brief\nhi\x02"},
		{"two systems", []Message{{RoleSystem, "a"}, {RoleDeveloper, "b"}, {RoleUser, "hi"}}, "\x01a\nb\nhi\x02"},
		{"only system", []Message{{RoleSystem, "a"}}, "\x01a\n\x02"},
		{"system before an answer", []Message{{RoleSystem, "a"}, {RoleAssistant, "b"}, {RoleUser, "c"}}, "\x01a\n\x02b\x03\x01c\x02"},
		{"turns", []Message{{RoleUser, "hi"}, {RoleAssistant, "yes"}, {RoleUser, "well"}}, "\x01hi\x02yes\x03\x01well\x02"},
		{"other roles", []Message{{"tool", "42"}}, "\x0142\x02"},
		{"special tokens in text", []Message{{RoleUser, "a\x00b\x01c\x02d\x03e\x04"}}, "\x01abcde\x04\x02"},
		{"bytes above ASCII", []Message{{RoleUser, "né\xff"}}, "\x01né\xff\x02"},
	}
	for _, test := range tests {
		got := string(Template(nil, test.messages))
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
		if n := Count(test.messages); n != len(test.want) {
			t.Errorf("%s: counted %d, want %d", test.name, n, len(test.want))
		}
	}
}

func TestTemplateProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var messages []Message
		for range rapid.IntRange(0, 6).Draw(t, "messages") {
			role := rapid.SampledFrom([]string{RoleSystem, RoleUser, RoleAssistant, "tool"}).Draw(t, "role")
			text := string(rapid.SliceOfN(rapid.ByteRange(0, 8), 0, 12).Draw(t, "text"))
			messages = append(messages, Message{role, text})
		}
		tokens := Template([]byte("before"), messages)
		if len(tokens)-len("before") != Count(messages) {
			t.Fatalf("%d tokens, counted %d", len(tokens)-len("before"), Count(messages))
		}
		if tokens[len(tokens)-1] != Assistant {
			t.Fatal("the model is not asked to speak")
		}
		users, answers := 0, 0
		for _, token := range tokens {
			switch token {
			case DocStart:
				t.Fatal("a document starts inside a chat")
			case User:
				users++
			case EndOfTurn:
				answers++
			}
		}
		wantAnswers := 0
		for _, m := range messages {
			if m.Role == RoleAssistant {
				wantAnswers++
			}
		}
		if answers != wantAnswers || users > len(messages)-wantAnswers {
			t.Fatalf("%d user turns and %d answers in %v", users, answers, messages)
		}
	})
}

func TestTextMayBeCutAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.ByteRange(0, 255), 0, 40).Draw(t, "text")
		cut := rapid.IntRange(0, len(text)).Draw(t, "cut")
		whole := AppendText(nil, text)
		pieces := AppendText(AppendText(nil, text[:cut]), string(text[cut:]))
		if string(whole) != string(pieces) || len(whole) != CountText(text) {
			t.Fatalf("%q in two pieces %q, counted %d", whole, pieces, CountText(text))
		}
	})
}
