package coordinator

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit/certtest"
	"github.com/coppice-ldl/coppice/internal/certs"
)

// TestClearAsker: a coordinator in the clear that asks a coordinator with TLS logs once what to do.
func TestClearAsker(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.NotFoundHandler()}
	t.Cleanup(func() { web.Close() })
	terms := certs.Terms{Port: certs.PortHTTP, Late: true, Within: time.Minute}
	secure := certs.Listen(inner, certtest.New(t).Source(certs.Coordinator, "a"), terms)
	go func() { _ = web.Serve(secure) }()
	var log bytes.Buffer
	k := newAsker(nil, slog.New(slog.NewTextHandler(&log, nil)))
	for range 3 {
		if _, err := k.askSelf(t.Context(), inner.Addr().String()); !errors.Is(err, certs.ErrSecure) {
			t.Fatalf("error %v", err)
		}
	}
	if n := strings.Count(log.String(), certs.ErrSecure.Error()); n != 1 {
		t.Errorf("the reason is logged %d times: %s", n, log.String())
	}
}
