package report

import (
	"reflect"
	"unicode/utf8"
)

// maxString is the longest text of a run that is taken over into a report,
// bytes. What kvcanary writes is shorter; a directory may come from a stranger.
const maxString = 4096

// clip cuts every text of a run that is longer than a report can bear.
func (r *Run) clip() {
	clipAll(reflect.ValueOf(r.Result))
	for i := range r.Exchanges {
		e := &r.Exchanges[i]
		for _, s := range []*string{&e.Protocol, &e.Label, &e.Tenant, &e.Tail} {
			*s = clipped(*s)
		}
		if e.Answer != nil {
			e.Answer.ID = clipped(e.Answer.ID)
		}
	}
}

// clipAll cuts all strings that a value leads to.
func clipAll(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(clipped(v.String()))
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			clipAll(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			clipAll(v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			clipAll(v.Index(i))
		}
	}
}

func clipped(s string) string {
	if len(s) <= maxString {
		return s
	}
	n := maxString
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + " ... (cut)"
}
