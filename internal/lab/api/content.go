package api

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/kvcanary/kvcanary/internal/lab"
	"github.com/kvcanary/kvcanary/internal/lab/model"
)

// content is what one turn of a chat says: its text, in which each picture is a
// run of placeholder tokens.
type content struct {
	text     text
	pictures []model.Picture
}

// placeholders stand for one picture.
var placeholders = strings.Repeat(string([]byte{model.Image}), model.ImageTokens)

// errContent is a content that is neither text nor pictures.
var errContent = errors.New(`content must be a string or a list of {"type":"text","text":...} and {"type":"image_url","image_url":{"url":"data:image/png;base64,..."}} parts; this engine reads nothing else`)

// UnmarshalJSON implements [json.Unmarshaler].
func (c *content) UnmarshalJSON(p []byte) error {
	if p[0] == '[' {
		return c.parts(p)
	}
	return json.Unmarshal(p, &c.text)
}

// parts decodes a list of parts, joined without anything in between.
func (c *content) parts(p []byte) error {
	var parts []struct {
		Type  string  `json:"type"`
		Text  *phrase `json:"text"`
		Image *struct {
			URL phrase `json:"url"`
		} `json:"image_url"`
	}
	if err := json.Unmarshal(p, &parts); err != nil {
		return errContent
	}
	var all strings.Builder
	for _, part := range parts {
		switch {
		case part.Type == "text" && part.Text != nil:
			all.WriteString(string(*part.Text))
		case part.Type == "image_url" && part.Image != nil:
			picture, err := look(string(part.Image.URL))
			if err != nil {
				return err
			}
			if c.pictures = append(c.pictures, picture); len(c.pictures) > lab.MaxImages {
				return fmt.Errorf("a request has at most %d pictures", lab.MaxImages)
			}
			all.WriteString(placeholders)
		default:
			return errContent
		}
	}
	c.text = text(all.String())
	return nil
}

// look reads a picture that comes within the request. Nothing is fetched.
func look(url string) (model.Picture, error) {
	const head = "data:image/png;base64,"
	if !strings.HasPrefix(url, head) {
		return model.Picture{}, errors.New("image_url must be a data URL that begins with " + head + "; this engine fetches nothing")
	}
	file, err := base64.StdEncoding.DecodeString(url[len(head):])
	if err != nil {
		return model.Picture{}, errors.New("image_url is not valid base64")
	}
	return model.Look(file)
}

// images finds the placeholders of pictures among tokens, where nothing else is
// that token.
func images(tokens []byte, pictures []model.Picture) []lab.Image {
	var out []lab.Image
	at := 0
	for _, p := range pictures {
		at += bytes.IndexByte(tokens[at:], model.Image)
		out = append(out, lab.Image{At: at, Picture: p})
		at += model.ImageTokens
	}
	return out
}
