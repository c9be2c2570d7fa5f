package api

import (
	"github.com/kvcanary/kvcanary/internal/lab"
	"github.com/kvcanary/kvcanary/internal/lab/model"
)

// chatTokens applies the chat template. Pictures are runs of placeholders.
func chatTokens(messages []message) ([]byte, []lab.Image, *lab.Error) {
	if len(messages) == 0 {
		return nil, nil, badRequest("messages must not be empty")
	}
	var pictures []model.Picture
	turns := make([]model.Message, len(messages))
	size := 1
	for i, m := range messages {
		switch m.Role {
		case model.RoleSystem, model.RoleDeveloper, model.RoleUser, model.RoleAssistant:
		default:
			return nil, nil, badRequest("role must be system, developer, user or assistant")
		}
		turns[i] = model.Message{Role: m.Role, Text: string(m.Content.text)}
		size += len(m.Content.text) + 2
		pictures = append(pictures, m.Content.pictures...)
	}
	if len(pictures) > lab.MaxImages {
		return nil, nil, badRequest("a request has at most %d pictures", lab.MaxImages)
	}
	tokens := model.Template(make([]byte, 0, size), turns)
	return tokens, images(tokens, pictures), nil
}

// promptTokens takes a prompt without the chat template.
func promptTokens(prompt phrase) []byte {
	return model.AppendText(make([]byte, 0, len(prompt)), string(prompt))
}
