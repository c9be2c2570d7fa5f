package wire

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxMessage = 400     // bytes of a target's words that a refusal carries
	maxMatched = 8 << 10 // bytes of a text that rules are matched against
)

// errorInfo is what an error body says, whatever shape it has.
type errorInfo struct {
	codes  []string // codes and types, at any depth
	param  string
	texts  []string // messages, outermost first, also those nested in strings
	fields map[string]int
}

// parseError reads an error body. It takes every shape that is known: OpenAI's
// and Anthropic's nested object, the flat one of SGLang and LMDeploy, a string
// under "error" or "detail", a list of pydantic's, and errors that a gateway
// has put into a string of its own.
func parseError(body []byte) errorInfo {
	e := errorInfo{fields: map[string]int{}}
	body = bytes.TrimSpace(body[:min(len(body), maxError)])
	var v any
	if len(body) > 0 && (body[0] == '{' || body[0] == '[' || body[0] == '"') {
		if _, ok := decode(body, &v); ok && v != nil {
			e.walk(v, 0)
		}
	}
	if len(e.texts) == 0 && len(body) > 0 {
		e.texts = []string{bodyText(body)}
	}
	return e
}

var (
	textKeys = []string{"message", "msg", "detail", "error_message", "error_description", "error_msg", "error", "raw", "reason"}
	codeKeys = []string{"code", "type", "error_type", "status", "__type"}
	title    = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
)

// bodyText is what a body that is not JSON says: of HTML its title.
func bodyText(body []byte) string {
	if isHTML(body) {
		if m := title.FindSubmatch(body); m != nil {
			return "an HTML page, " + strconv.Quote(oneLine(string(m[1]), 100))
		}
		return "an HTML page"
	}
	return string(body)
}

func isHTML(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))
}

// maxNesting is how many objects, lists and strings deep an error is followed.
const maxNesting = 8

func (e *errorInfo) walk(v any, depth int) {
	if depth > maxNesting || len(e.texts) > 32 {
		return
	}
	switch v := v.(type) {
	case string:
		e.text(v, depth)
	case []any:
		for _, x := range v[:min(len(v), 16)] {
			e.walk(x, depth+1)
		}
	case map[string]any:
		e.object(v, depth)
	}
}

// object takes an error object: codes and numbers, then its texts in the order
// of textKeys, then what is nested in it, in the order of names.
func (e *errorInfo) object(m map[string]any, depth int) {
	for _, k := range codeKeys {
		switch c := m[k].(type) {
		case string:
			e.codes = append(e.codes, c)
		case float64:
			e.codes = append(e.codes, strconv.FormatFloat(c, 'f', -1, 64))
		}
	}
	if p, ok := m["param"].(string); ok && e.param == "" {
		e.param = p
	}
	if loc, ok := m["loc"].([]any); ok && len(loc) > 0 && e.param == "" {
		e.param, _ = loc[len(loc)-1].(string)
	}
	for _, k := range textKeys {
		if s, ok := m[k].(string); ok {
			e.text(s, depth)
		}
	}
	for _, k := range sortedKeys(m) {
		switch x := m[k].(type) {
		case float64:
			if x >= 0 && x <= 1e12 {
				e.fields[k] = int(x)
			}
		case map[string]any, []any:
			e.walk(x, depth+1)
		}
	}
}

func sortedKeys(m map[string]any) []string {
	var ks []string
	for k := range m {
		ks = append(ks, k)
	}
	slices.Sort(ks)
	return ks
}

// text takes a message, and the error object that stands in it, if any.
func (e *errorInfo) text(s string, depth int) {
	e.texts = append(e.texts, s)
	i := strings.IndexByte(s, '{')
	if i < 0 || depth >= maxNesting {
		return
	}
	var v any
	if json.NewDecoder(strings.NewReader(s[i:])).Decode(&v) == nil {
		e.walk(v, depth+1)
	}
}

// errorFields are the members by which a JSON document gives itself away as an
// error.
type errorFields struct {
	Error   json.RawMessage `json:"error"`
	Object  string          `json:"object"`
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"`
	Msg     string          `json:"msg"`
	Message json.RawMessage `json:"message"`
	Detail  json.RawMessage `json:"detail"`
}

// isError tells an error from an answer, which may hold an empty error.
func (d *errorFields) isError(hasChoices bool) bool {
	switch string(d.Error) {
	case "", "null", "{}", `""`, "false":
	default:
		return true
	}
	if d.Object == "error" || d.Type == "error" {
		return true
	}
	words := len(d.Message) > 0 && (d.Code != nil || d.Message[0] == '"')
	return !hasChoices && (d.Detail != nil || d.Msg != "" || words)
}

// classify says why a target declined. status is that of the response; inAnswer
// means that the error stood in the body of a 200.
func classify(status int, h http.Header, body []byte, inAnswer bool, now time.Time) (*Refusal, string) {
	info := parseError(body)
	r := &Refusal{Status: status, InAnswer: inAnswer}
	if inAnswer {
		r.Status = info.status(status)
	}
	known := r.Status // 0 where an error in a 200 names no status: rules of any status may match
	if known < 400 {
		known = 0
	}
	param := ""
	if m := match(known, len(bytes.TrimSpace(body)) == 0, info); m != nil {
		r.Kind, r.Rule, r.Limit, r.Sent, r.AtLeast, param = m.kind, m.name, m.limit, m.sent, m.atLeast, m.param
	} else if known >= 500 {
		r.Kind, r.Rule = RefusedServer, "status-server"
	} else {
		r.Kind, r.Rule = RefusedOther, "status-other"
	}
	if r.Kind == RefusedOutput && r.Limit > 0 && r.Sent >= r.Limit {
		r.Kind = RefusedContext // too long whatever answer is wanted
	}
	r.RetryAfter = retryAfter(h, now)
	if r.RetryAfter == 0 && r.Kind == RefusedRate {
		r.RetryAfter = rateReset(h, now) // servers send these headers with every answer
	}
	r.Message = http.StatusText(status)
	if len(info.texts) > 0 {
		r.Message = oneLine(info.texts[0], maxMessage)
	}
	return r, param
}

// status is the HTTP status that an error in an answer names, else the one given.
func (e *errorInfo) status(otherwise int) int {
	for _, c := range e.codes {
		if n, err := strconv.Atoi(c); err == nil && n >= 400 && n < 600 {
			return n
		}
	}
	return otherwise
}

// matched is a rule with what its groups caught.
type matched struct {
	rule
	limit, sent int
	atLeast     bool
	param       string
}

// match finds the first rule for an error; nil if there is none.
func match(status int, noBody bool, info errorInfo) *matched {
	for _, r := range rules {
		if len(r.status) > 0 && status != 0 && !slices.Contains(r.status, status) {
			continue
		}
		if len(r.status) > 0 && status == 0 && r.re == nil && r.codes == nil {
			continue // a rule about the status alone needs one
		}
		if r.noBody && !noBody {
			continue
		}
		if len(r.codes) > 0 && !slices.ContainsFunc(info.codes, func(c string) bool {
			return slices.ContainsFunc(r.codes, func(want string) bool { return strings.EqualFold(c, want) })
		}) {
			continue
		}
		m := &matched{rule: r, limit: info.fields[r.limitKey], sent: info.fields[r.sentKey]}
		if r.re != nil && !m.catch(info.texts) {
			continue
		}
		if m.param == "" && r.kind == RefusedParameter && r.re == nil {
			m.param = info.param
		}
		return m
	}
	return nil
}

// catch matches the expression against each text and takes the groups of the
// first that fits.
func (m *matched) catch(texts []string) bool {
	for _, t := range texts {
		sub := m.re.FindStringSubmatch(t[:min(len(t), maxMatched)])
		if sub == nil {
			continue
		}
		for i, name := range m.re.SubexpNames() {
			switch name {
			case "limit":
				m.limit = parseNumber(sub[i])
			case "sent":
				m.sent = parseNumber(sub[i])
			case "at_least":
				m.atLeast = sub[i] != ""
			case "param":
				m.param = strings.ToLower(sub[i])
			}
		}
		return true
	}
	return false
}

// parseNumber reads 4096, 1,048,576 and 72417.0; anything else is 0.
func parseNumber(s string) int {
	s = strings.NewReplacer(",", "", "_", "").Replace(s)
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f > 1e12 {
		return 0
	}
	return int(f)
}
