package api

import "github.com/kvcanary/kvcanary/internal/lab"

// roles are the roles of a chat that the model knows, by the names that
// clients give them.
var roles = map[string]string{"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}

// chatTokens applies the chat template.
func chatTokens(messages []message) ([]byte, *lab.Error) {
	if len(messages) == 0 {
		return nil, badRequest("messages must not be empty")
	}
	size := 1
	for _, m := range messages {
		if roles[m.Role] == "" {
			return nil, badRequest("role must be system, developer, user or assistant")
		}
		size += len(m.Content) + 2
	}
	dst := make([]byte, 0, size)
	inUser := false
	for _, m := range messages {
		switch roles[m.Role] {
		case "assistant":
			dst = append(dst, 2)
			dst = appendText(dst, m.Content)
			dst = append(dst, 3)
			inUser = false
		default:
			if inUser {
				dst = append(dst, '\n')
			} else {
				dst = append(dst, 1)
			}
			dst = appendText(dst, m.Content)
			inUser = m.Role == "system"
		}
	}
	return append(dst, 2), nil
}

// appendText appends text as tokens, without the special ones.
func appendText(dst, text []byte) []byte {
	for _, c := range text {
		if c > 3 {
			dst = append(dst, c)
		}
	}
	return dst
}

// promptTokens takes a prompt without the chat template.
func promptTokens(text []byte) ([]byte, *lab.Error) {
	tokens := appendText(make([]byte, 0, len(text)), text)
	if len(tokens) == 0 {
		return nil, badRequest("the prompt must not be empty")
	}
	return tokens, nil
}
