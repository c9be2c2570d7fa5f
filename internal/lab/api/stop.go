package api

import "strings"

// stopper ends a text before the first of some stop strings. It holds back
// only what could be the beginning of one.
type stopper struct {
	stops []string
	held  string
}

// write takes more text and returns what can be shown. Once hit is not "", the
// text has ended before that stop string. Where two stop strings begin at the
// same place, the one that stands first in the list is hit.
func (s *stopper) write(text string) (show, hit string) {
	text = s.held + text
	end := len(text)
	for _, stop := range s.stops {
		if i := strings.Index(text[:min(len(text), end+len(stop))], stop); i >= 0 && i < end {
			end, hit = i, stop
		}
	}
	if hit != "" {
		s.held = ""
		return text[:end], hit
	}
	keep := 0
	for _, stop := range s.stops {
		for n := min(len(stop)-1, len(text)); n > keep; n-- {
			if strings.HasSuffix(text, stop[:n]) {
				keep = n
			}
		}
	}
	s.held = text[len(text)-keep:]
	return text[:len(text)-keep], ""
}

// close returns what was held back: nothing more comes.
func (s *stopper) close() string {
	rest := s.held
	s.held = ""
	return rest
}
