package certs

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"time"
)

// material is what the files say. It never changes.
type material struct {
	pair  *tls.Certificate // nil: the process has no certificate
	id    Identity         // without a certificate, only its cluster is known
	roots *x509.CertPool
}

// chain verifies that an authority has signed the first certificate of a list, and returns until when
// that holds.
func (m *material) chain(list []*x509.Certificate, use x509.ExtKeyUsage) (until time.Time, err error) {
	more := x509.NewCertPool()
	for _, c := range list[1:] {
		more.AddCert(c)
	}
	chains, err := list[0].Verify(x509.VerifyOptions{Roots: m.roots, Intermediates: more,
		KeyUsages: []x509.ExtKeyUsage{use}})
	for _, chain := range chains {
		ends := slices.MinFunc(chain, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }).NotAfter
		if ends.After(until) {
			until = ends
		}
	}
	return until, err
}
