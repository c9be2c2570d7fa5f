package model

// Special tokens. All other tokens are bytes of text.
const (
	DocStart  = 0 // begins a document; also the placeholder of a refused prompt
	User      = 1 // begins a user's turn
	Assistant = 2 // begins the model's turn
	EndOfTurn = 3 // ends the model's turn
)

// Roles of messages. Texts of RoleSystem and RoleDeveloper become part of the next user's turn;
// any other role than RoleAssistant is treated as RoleUser.
const (
	RoleSystem    = "system"
	RoleDeveloper = "developer"
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// Message is one message of a chat.
type Message struct {
	Role string
	Text string
}

// AppendText tokenizes text: its bytes, without those of special tokens, which only the
// template may set. A text may be given in any number of pieces, cut anywhere.
func AppendText[T string | []byte](tokens []byte, text T) []byte {
	for i := 0; i < len(text); i++ {
		if text[i] > EndOfTurn {
			tokens = append(tokens, text[i])
		}
	}
	return tokens
}

// CountText is the length of text in tokens.
func CountText[T string | []byte](text T) int {
	n := 0
	for i := 0; i < len(text); i++ {
		if text[i] > EndOfTurn {
			n++
		}
	}
	return n
}

// AppendTurn appends one turn: User and the text, or Assistant, the text and EndOfTurn.
func AppendTurn(tokens []byte, role, text string) []byte {
	if role == RoleAssistant {
		tokens = AppendText(append(tokens, Assistant), text)
		return append(tokens, EndOfTurn)
	}
	return AppendText(append(tokens, User), text)
}

// Template is a chat as the model's prompt: its turns, then Assistant, after which the model
// speaks. Capacity is the caller's to give: tokens are appended to dst.
func Template(dst []byte, messages []Message) []byte {
	system := false // a user's turn is open and holds only system text so far
	for _, m := range messages {
		switch m.Role {
		case RoleSystem, RoleDeveloper:
			if !system {
				dst = append(dst, User)
			}
			dst = append(AppendText(dst, m.Text), '\n')
			system = true
			continue
		case RoleAssistant:
			dst = AppendTurn(dst, m.Role, m.Text)
		default:
			if !system {
				dst = append(dst, User)
			}
			dst = AppendText(dst, m.Text)
		}
		system = false
	}
	return append(dst, Assistant)
}

// Count is the length of Template's result.
func Count(messages []Message) int {
	n, system := 1, false
	for _, m := range messages {
		n += CountText(m.Text)
		switch m.Role {
		case RoleSystem, RoleDeveloper:
			n++ // the line feed
			if !system {
				n++
			}
			system = true
			continue
		case RoleAssistant:
			n += 2
		default:
			if !system {
				n++
			}
		}
		system = false
	}
	return n
}
