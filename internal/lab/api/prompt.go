package api

import (
	"github.com/kvcanary/kvcanary/internal/lab"
	"github.com/kvcanary/kvcanary/internal/lab/model"
)

// chatTokens applies the chat template.
func chatTokens(messages []message) ([]byte, *lab.Error) {
	if len(messages) == 0 {
		return nil, badRequest("messages must not be empty")
	}
	turns := make([]model.Message, len(messages))
	size := 1
	for i, m := range messages {
		switch m.Role {
		case model.RoleSystem, model.RoleDeveloper, model.RoleUser, model.RoleAssistant:
		default:
			return nil, badRequest("role must be system, developer, user or assistant")
		}
		turns[i] = model.Message{Role: m.Role, Text: string(m.Content)}
		size += len(m.Content) + 2
	}
	return model.Template(make([]byte, 0, size), turns), nil
}

// promptTokens takes a prompt without the chat template.
func promptTokens(prompt phrase) []byte {
	return model.AppendText(make([]byte, 0, len(prompt)), string(prompt))
}
