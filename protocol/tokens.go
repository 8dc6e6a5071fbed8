package protocol

import (
	"fmt"
	"regexp"
)

// TokenIDBytes is the length of the id of a token before it is written in hexadecimal.
const TokenIDBytes = 8

var tokenIDPattern = regexp.MustCompile(`^[0-9a-f]{16}$`)

// CheckTokenID reports why text cannot be the id of a token.
func CheckTokenID(text string) error {
	if !tokenIDPattern.MatchString(text) {
		return fmt.Errorf("the id %.80q of a token is not valid: want %d hexadecimal digits", text, 2*TokenIDBytes)
	}
	return nil
}

// TokenRequest makes a token of a user valid. The client draws the token, and keeps the secret.
type TokenRequest struct {
	ID      string `json:"id"`
	SHA256  string `json:"sha256"` // of the secret
	Role    string `json:"role"`   // read, submit or admin
	Owner   string `json:"owner"`  // the user
	Quota   uint32 `json:"quota,omitempty"`
	Expires int64  `json:"expires,omitempty"`
}

// Token describes a token of a user. The secret and its hash are not among it.
type Token struct {
	ID    string `json:"id"`
	Owner string `json:"owner"`
	Role  string `json:"role"`
	// Quota is how many jobs of the owner that have not ended there may be when the token
	// submits another one; 0: no bound.
	Quota   uint32 `json:"quota,omitempty"`
	Created int64  `json:"created"`           // Unix seconds
	Expires int64  `json:"expires,omitempty"` // Unix seconds; 0: never
	Revoked int64  `json:"revoked,omitempty"` // Unix seconds; 0: it is not
}

// TokenPutEntry makes a token valid. The same token again is harmless. A token with the ID of another
// one is refused.
type TokenPutEntry struct {
	TokenRequest

	Time int64 `json:"time"` // Unix seconds of the leader
}

// TokenRevokeEntry ends a token. A token that was revoked before stays as it is.
type TokenRevokeEntry struct {
	ID   string `json:"id"`
	Time int64  `json:"time"`
}
