package access

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// SealSession is sealSession, for tests.
var SealSession = sealSession

// ForgeSession returns the cookie that a thief of a hash can make, who does not know the secret.
func ForgeSession(hash [sha256.Size]byte, id, cluster string, until time.Time) string {
	head, err := hex.DecodeString(id)
	if err != nil {
		panic(err)
	}
	head = append([]byte{sessionVersion}, head...)
	plain := binary.BigEndian.AppendUint64(hash[:], uint64(until.Unix()))
	sealed := sessionCipher(hash).Seal(nil, nil, plain, append(head[:sessionHead:sessionHead], cluster...))
	return sessionText.EncodeToString(append(head, sealed...))
}

// OpenSession reports whether a cookie is the session of a token that is known, and returns the token's id.
func OpenSession(value string, known Registry) (id string, ok bool) {
	c := openSession(value, known.ClusterID())
	token, exists := known.Token(c.id)
	if c.holds == nil {
		return "", false
	}
	_, holds := c.holds(&token)
	return c.id, holds && exists
}
