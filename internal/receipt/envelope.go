package receipt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// PayloadType is that of in-toto statements.
const PayloadType = "application/vnd.in-toto+json"

// Envelope is a signed payload: DSSE 1.0.2.
type Envelope struct {
	PayloadType string      `json:"payloadType"`
	Payload     []byte      `json:"payload"` // base64 in JSON
	Signatures  []Signature `json:"signatures"`
}

// Signature is one signature of an envelope. KeyID is a hint that nothing vouches for.
type Signature struct {
	KeyID string `json:"keyid"`
	Sig   []byte `json:"sig"` // base64 in JSON
}

// maxEnvelope bounds an envelope that is read, bytes.
const maxEnvelope = 16 << 20

// seal signs a payload.
func seal(s *Signer, payload []byte) ([]byte, error) {
	sig, err := s.note.Sign(pae(PayloadType, payload))
	if err != nil {
		return nil, fmt.Errorf("sign the receipt: %w", err)
	}
	e := Envelope{PayloadType, payload, []Signature{{s.Verifier().keyID(), sig}}}
	p, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		panic("kvcanary: internal error: " + err.Error())
	}
	return append(p, '\n'), nil
}

// ErrSignature means that nobody whose key is known has signed this.
var ErrSignature = errors.New("the signature is not of this key, or what it signs was changed")

// open returns the payload of an envelope that v has signed.
func open(v *Verifier, envelope []byte) ([]byte, error) {
	e, err := parseEnvelope(envelope)
	if err != nil {
		return nil, err
	}
	for _, s := range e.Signatures {
		if v.note.Verify(pae(e.PayloadType, e.Payload), s.Sig) {
			return e.Payload, nil
		}
	}
	return nil, ErrSignature
}

// parseEnvelope reads an envelope and nothing else: what a signature does not
// cover must not be there.
func parseEnvelope(p []byte) (Envelope, error) {
	var e Envelope
	d := json.NewDecoder(io.LimitReader(bytes.NewReader(p), maxEnvelope))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return e, fmt.Errorf("this is no receipt: %w", err)
	}
	again, err := json.MarshalIndent(e, "", "  ")
	if err != nil || !bytes.Equal(append(again, '\n'), p) {
		return e, errors.New("this is no receipt as this version of kvcanary writes it: something was added, moved or written otherwise")
	}
	if e.PayloadType != PayloadType {
		return e, fmt.Errorf("the receipt's payload is of type %q, not %s", e.PayloadType, PayloadType)
	}
	return e, nil
}

// pae is what is signed: DSSE's pre-authentication encoding, which binds type
// and length.
func pae(payloadType string, payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
}
