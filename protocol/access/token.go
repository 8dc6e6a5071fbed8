package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"

	"github.com/coppice-ldl/coppice/protocol"
)

// secretBytes is the length of the secret of a token. A token is text such as
// coppice_0123456789abcdef_SECRET. Its id is public.
const secretBytes = 32

var tokenPattern = regexp.MustCompile(`^coppice_([0-9a-f]{16})_([0-9a-f]{64})$`)

// NewToken draws a token. A cluster gets only the id and the hash.
func NewToken() (text, id string, hash [sha256.Size]byte) {
	b := make([]byte, protocol.TokenIDBytes+secretBytes)
	rand.Read(b) // never fails
	id = hex.EncodeToString(b[:protocol.TokenIDBytes])
	secret := hex.EncodeToString(b[protocol.TokenIDBytes:])
	return "coppice_" + id + "_" + secret, id, sha256.Sum256([]byte(secret))
}

// errTokenForm does not repeat the text, which may be a secret.
var errTokenForm = errors.New("the text is not a token, want coppice_ID_SECRET as coppice token create printed it")

var tokenInText = regexp.MustCompile(`coppice_([0-9a-f]{16})_[0-9a-zA-Z]*`)

// HasToken reports whether a text has a token, or the beginning of one.
func HasToken(text string) bool { return tokenInText.MatchString(text) }

// HideTokens replaces the secrets of tokens in a text.
func HideTokens(text string) string { return tokenInText.ReplaceAllString(text, "coppice_${1}_SECRET") }

// ParseToken takes a token apart.
func ParseToken(text string) (id, secret string, err error) {
	m := tokenPattern.FindStringSubmatch(text)
	if m == nil {
		return "", "", errTokenForm
	}
	return m[1], m[2], nil
}
