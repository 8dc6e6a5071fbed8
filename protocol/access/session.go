package access

import (
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// A session is the login of a browser. No server stores it: a cookie has the secret of a token, sealed with a key that
// each coordinator derives from the hash of the secret. A thief of the cookie lacks the hash, and so learns no token. A
// thief of the hash lacks the secret, and so makes no cookie.
//
// The value of the cookie is base64url of: version (1 byte), id of the token (8), and what AES-256-GCM makes of the
// secret (32) and the session's end in Unix seconds (8). The id of the cluster is authenticated, too.
const (
	sessionVersion = 1
	sessionUse     = "coppice session 1" // for what the key is derived
	sessionHead    = 1 + protocol.TokenIDBytes
	sessionPlain   = secretBytes + 8
	sessionBytes   = sessionHead + 12 + sessionPlain + 16 // with nonce and tag
	cookiePrefix   = "__Secure-coppice-"
)

// MaxSession is the longest time of a session. It also ends with its token.
const MaxSession = 12 * time.Hour

// sessionText has one text for each value: a cookie that is changed in any bit is another cookie.
var sessionText = base64.RawURLEncoding.Strict()

// sessionCipher returns the cipher of the sessions of a token.
func sessionCipher(hash [sha256.Size]byte) cipher.AEAD {
	key, err := hkdf.Key(sha256.New, hash[:], nil, sessionUse, 32)
	if err != nil {
		panic(err) // the sizes above are possible
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	sealed, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return sealed
}

// sealSession returns the value of the cookie of a session that ends at a time. ParseToken has returned id and secret.
func sealSession(id, secret, cluster string, until time.Time) string {
	head, errID := hex.DecodeString(id)
	plain, errSecret := hex.DecodeString(secret)
	if err := cmp.Or(errID, errSecret); err != nil {
		panic(err)
	}
	head = append([]byte{sessionVersion}, head...)
	plain = binary.BigEndian.AppendUint64(plain, uint64(until.Unix()))
	sealed := sessionCipher(sha256.Sum256([]byte(secret))).Seal(nil, nil, plain, append(slices.Clone(head), cluster...))
	return sessionText.EncodeToString(append(head, sealed...))
}

// openSession returns what a cookie claims. The claim is empty if the value is not one of sealSession.
func openSession(value, cluster string) claim {
	sealed := make([]byte, sessionBytes)
	if len(value) != sessionText.EncodedLen(sessionBytes) {
		return claim{}
	}
	n, err := sessionText.Decode(sealed, []byte(value))
	if err != nil || n != sessionBytes || sealed[0] != sessionVersion {
		return claim{}
	}
	return claim{id: hex.EncodeToString(sealed[1:sessionHead]), holds: func(t *Token) (until time.Time, ok bool) {
		head, rest := sealed[:sessionHead:sessionHead], sealed[sessionHead:]
		plain, err := sessionCipher(t.Hash).Open(nil, nil, rest, append(head, cluster...))
		if err != nil {
			return until, false
		}
		until = time.Unix(int64(binary.BigEndian.Uint64(plain[secretBytes:])), 0)
		secret := hex.EncodeToString(plain[:secretBytes])
		return until, holdsSecret(t, secret) && time.Now().Before(until)
	}}
}

// claim is what a caller shows to be the owner of a token.
type claim struct {
	id string // of the token; empty: the claim has not the form of any
	// holds reports whether the claim is about the token, and when it ends; zero: with the token.
	holds func(t *Token) (until time.Time, ok bool)
}

// claimOf reads the text of a token.
func claimOf(text string) claim {
	id, secret, err := ParseToken(text)
	if err != nil {
		return claim{}
	}
	return claim{id: id, holds: func(t *Token) (time.Time, bool) { return time.Time{}, holdsSecret(t, secret) }}
}

// holdsSecret reports whether a token has a secret.
func holdsSecret(t *Token, secret string) bool {
	hash := sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(hash[:], t.Hash[:]) == 1
}
