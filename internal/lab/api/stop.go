package api

import "strings"

// stopper ends a text before the first of some stop strings. It holds back
// only what could be the beginning of one.
type stopper struct {
	stops []string
	held  string
}

// write takes more text and returns what can be shown. Once hit is not "", the
// text has ended before that stop string: the first to be complete, and of
// those that complete together the longest. How the text was cut into writes
// makes no difference.
func (s *stopper) write(text string) (show, hit string) {
	text = s.held + text
	end := len(text) + 1 // of the hit
	for _, stop := range s.stops {
		i := strings.Index(text, stop)
		if e := i + len(stop); i >= 0 && (e < end || e == end && len(stop) > len(hit)) {
			end, hit = e, stop
		}
	}
	if hit != "" {
		s.held = ""
		return text[:end-len(hit)], hit
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
