package access

// SealSession is sealSession, for tests.
var SealSession = sealSession

// OpenSession reports whether a cookie is the session of a token that is known, and returns the token's id.
func OpenSession(value string, known Registry) (id string, ok bool) {
	c := openSession(value, known.Cluster())
	token, exists := known.Token(c.id)
	if c.holds == nil {
		return "", false
	}
	_, holds := c.holds(&token)
	return c.id, holds && exists
}
