package canary

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTokenForm(t *testing.T) {
	c := New(testKey(5))
	form := regexp.MustCompile(`^CANARY-[a-z0-9]{16}$`)
	rapid.Check(t, func(t *rapid.T) {
		id := ID(rapid.Uint64Range(0, 1<<idBits-1).Draw(t, "id"))
		s := c.Token(id)
		if !form.MatchString(s) {
			t.Fatalf("token %q", s)
		}
		text := []byte("(" + s + ")")
		sameHits(t, text, c.Scan(text), []Hit{{ID: id, Form: ShortToken, Start: 1, End: int64(len(text)) - 1}})
	})
}

// TestTokenDisguises (C6): what does not hide a token.
func TestTokenDisguises(t *testing.T) {
	c := New(testKey(5))
	s := c.Token(99)
	body := s[len(tokenPrefix):]
	wide := strings.Map(func(r rune) rune { return r - '!' + 0xFF01 }, s)
	for name, text := range map[string]string{
		"plain":               s,
		"lower case":          strings.ToLower(s),
		"upper case":          strings.ToUpper(s),
		"first letter cut":    s[1:],
		"two letters cut":     s[2:],
		"prefix nearly gone":  s[5:],
		"in a word":           "xx" + s + "xx",
		"markdown":            "**" + s + "**",
		"markdown escape":     `CANARY\-` + body,
		"no-break hyphen":     "CANARY\u2011" + body,
		"hyphen":              "canary\u2010" + body,
		"em dash":             "CANARY\u2014" + body,
		"minus":               "CANARY\u2212" + body,
		"full-width":          wide,
		"full-width body":     "CANARY-" + wide[len("ＣＡＮＡＲＹ－"):],
		"zero width in body":  "CANARY-" + body[:5] + "\u200b" + body[5:11] + "\u2060" + body[11:],
		"json escape in body": "CANARY-" + fmt.Sprintf(`\u%04x`, body[0]) + body[1:],
		"html escape in body": "CANARY-" + body[:15] + fmt.Sprintf("&#%d;", body[15]),
	} {
		for _, around := range []string{"", " ", "\n", "é", "-"} {
			if hits := c.Scan([]byte(around + text + around)); len(hits) != 1 || hits[0].ID != 99 {
				t.Errorf("%s: %q between %q: %+v", name, text, around, hits)
			}
		}
	}
}

// TestForeignTokens: tokens of others, and ours with any one character
// changed, are never hits.
func TestForeignTokens(t *testing.T) {
	c, other := New(testKey(5)), New(testKey(6))
	var text strings.Builder
	for id := range ID(20_000) {
		text.WriteString(other.Token(id) + "\n")
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		b := []byte("CANARY-")
		for range tokenChars {
			b = append(b, digits36[r.IntN(tokenRadix)])
		}
		text.Write(append(b, ' '))
	}
	s := c.Token(1234)
	for at := len(tokenPrefix); at < len(s); at++ {
		for _, d := range digits36 {
			if byte(d) != s[at] {
				text.WriteString(s[:at] + string(d) + s[at+1:] + "\n")
			}
		}
	}
	for cut := len(tokenPrefix) + 1; cut < len(s); cut++ {
		text.WriteString(s[:cut] + "\n" + tokenPrefix + s[cut:] + "\n")
	}
	if hits := c.Scan([]byte(text.String())); len(hits) > 0 {
		t.Errorf("%+v", hits)
	}
}
