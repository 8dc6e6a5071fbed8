package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"
)

// A token is text such as coppice_0123456789abcdef_SECRET. Its id is public.
const (
	tokenIDBytes = 8
	secretBytes  = 32
)

var tokenPattern = regexp.MustCompile(`^coppice_([0-9a-f]{16})_([0-9a-f]{64})$`)

// NewToken draws a token. A cluster gets only the id and the hash.
func NewToken() (text, id string, hash [sha256.Size]byte) {
	b := make([]byte, tokenIDBytes+secretBytes)
	rand.Read(b) // never fails
	id = hex.EncodeToString(b[:tokenIDBytes])
	secret := hex.EncodeToString(b[tokenIDBytes:])
	return "coppice_" + id + "_" + secret, id, sha256.Sum256([]byte(secret))
}

// errTokenForm does not repeat the text, which may be a secret.
var errTokenForm = errors.New("the text is not a token, want coppice_ID_SECRET as coppice token create printed it")

// ParseToken takes a token apart.
func ParseToken(text string) (id, secret string, err error) {
	m := tokenPattern.FindStringSubmatch(text)
	if m == nil {
		return "", "", errTokenForm
	}
	return m[1], m[2], nil
}
