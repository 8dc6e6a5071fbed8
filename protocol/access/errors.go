package access

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// StatusRemoved answers a coordinator that was removed from the cluster, if its certificate is revoked.
const StatusRemoved = http.StatusGone

// callerHeader has the caller of a request that a coordinator or a proxy forwards.
const callerHeader = "Coppice-Caller"

// Errors of callers without a valid identity.
var (
	errNoIdentity = errtext.Errorf(errtext.NoAccess, "this server answers only callers with an identity; give {tls-dir} with a folder from coppice certs client, or a token with {token-file} or COPPICE_TOKEN_FILE: %w", certs.ErrNoCertificate)
	errToken      = errors.New("the token is not valid here: it does not exist, has expired or was revoked; an admin makes another one with coppice token create NAME --role ROLE")
	errRevoked    = errors.New("the certificate of the caller is revoked; an admin issues another one with coppice certs")
	errProxy      = fmt.Errorf("the certificate of the proxy: %w", errRevoked)
	errExpired    = errors.New("the certificate of the caller has expired; an admin issues another one with coppice certs")
	errUntrusted  = errors.New("the certificate of the caller is not trusted here: another authority has signed it, or it is of another cluster, or of a role that this port refuses")
	errRemoved    = errors.New("the certificate of the caller is revoked, and its coordinator is not a member of the cluster")
	errStarting   = errors.New("this coordinator is starting and does not know the tokens of its cluster yet; try again")
	errForwarder  = errors.New("the coordinator or the proxy that forwards the request is not trusted any more; ask another coordinator")
	errForged     = errors.New("only a coordinator or a proxy forwards requests of other callers")
	errUnnamed    = fmt.Errorf("a proxy has sent the request and names no user: have it set the header %s, or pass on the header Authorization with a token", callerHeader)
	errTwoCallers = fmt.Errorf("a proxy has sent the request with the header %s and a token, which may name two users: have it remove one of them", callerHeader)
	errWorker     = fmt.Errorf("this process takes a certificate of a user, or for /metrics the token of its --metrics-token-file: %w", certs.ErrNoCertificate)
)

// StatusOf returns the status of an answer to a caller without a valid identity. ok is false if the error
// is another one. The identity may have ended while the request was answered: it is then the cause of the
// request's context.
func StatusOf(err error) (status int, ok bool) {
	var untrusted *certificateError
	switch {
	case errors.Is(err, errStarting), errors.Is(err, errForwarder):
		return http.StatusServiceUnavailable, true // the client asks again
	case errors.Is(err, errRemoved):
		return StatusRemoved, true
	case errors.Is(err, certs.ErrNoCertificate), errors.Is(err, errToken):
		return http.StatusUnauthorized, true
	case errors.As(err, &untrusted), errors.Is(err, errExpired), errors.Is(err, errRevoked):
		return http.StatusForbidden, true
	}
	return 0, false
}

// untrusted returns the error about a certificate that certs refuses. Its text names neither this
// cluster nor its files, since the caller may be a stranger.
func untrusted(err error) error {
	text := errUntrusted
	switch {
	case errors.Is(err, certs.ErrExpired):
		text = errExpired
	case errors.Is(err, certs.ErrRevoked):
		text = errRevoked
	}
	return &certificateError{text, err}
}

// certificateError is an error about the certificate of a caller.
type certificateError struct {
	error        // for the caller
	reason error // for the audit records
}

// Unwrap returns the reason.
func (e *certificateError) Unwrap() error { return e.reason }

// ownerError is an error about an owner.
type ownerError string

func (e ownerError) Error() string { return string(e) }

// Is makes each of them equal to ErrOwner.
func (ownerError) Is(target error) bool { return target == ErrOwner }

var (
	// ErrOwner is wrapped by the error about something that the caller may not change, because of its owner.
	ErrOwner error = ownerError("another user has made it")
	// ErrPrivate is wrapped by the error about something that the caller may not read.
	ErrPrivate error = ownerError("it is private")
	errNobody        = ownerError("it has no owner, so only an admin may change it")
)
