package oracle_test

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestEncodedLeakIsToldAsSuch(t *testing.T) {
	w := newWorld(t)
	w.served(0)
	w.served(1, "content", base64.StdEncoding.EncodeToString([]byte("see "+w.words(0, 0, 0, 12)+" end")))
	j := w.judge("leak")
	w.expect(j, "leak 1/bob from 0/ada in content, 12 words at 0")
	if !strings.Contains(j.Findings[0].Explain, "base64") {
		t.Errorf("explained as %q", j.Findings[0].Explain)
	}
}
