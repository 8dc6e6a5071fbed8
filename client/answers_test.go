package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// refuses answers every request with a status and a page, as a proxy does.
func refuses(t *testing.T, status int, asked *atomic.Int32) string {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			asked.Add(1)
		}
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		io.WriteString(w, "<html>"+http.StatusText(status)+"</html>")
	}).URL
}

// TestProxyRefuses: a status of a proxy that will not change is an error at once, which names the request and what to
// do. A status that may change is waited for. Other addresses are asked in both cases.
func TestProxyRefuses(t *testing.T) {
	well := serve(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, protocol.JobInfo{ID: 7}) })
	for _, status := range []int{401, 403, 405, 407, 411, 413, 414, 431} {
		var asked atomic.Int32
		at := refuses(t, status, &asked)
		c := connect(t, at)
		c.met.Store(true) // the proxy let other requests pass
		c.Waiting = func(err error) { t.Errorf("status %d: it waits after %v", status, err) }
		_, err := c.Jobs().Submit(t.Context(), protocol.Spec{Name: strings.Repeat("x", 3<<20)})
		var e *Error
		if !errors.As(err, &e) || !e.Proxy || e.Status != status || errors.Is(err, ErrStranger) || asked.Load() != 1 {
			t.Errorf("status %d after %d requests: %v", status, asked.Load(), err)
			continue
		}
		for _, want := range []string{fmt.Sprintf("%s: a proxy, and not a coordinator, refuses the request POST /v1/jobs "+
			"with the status %d %s", bare(at), status, http.StatusText(status)), "--server"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("status %d: %v, want %q", status, err, want)
			}
		}
		if names := strings.Contains(err.Error(), "The body has 3.0 MiB: raise the limit of the proxy for bodies "+
			"(client_max_body_size of nginx)"); names != (status == 413) {
			t.Errorf("status %d: %v", status, err)
		}
		if j, err := connect(t, at, well.URL).Jobs().Submit(t.Context(), protocol.Spec{}); err != nil || j.ID != 7 {
			t.Errorf("status %d and another address: %+v, %v", status, j, err)
		}
	}
	for _, status := range []int{429, 502, 503, 504} {
		var asked atomic.Int32
		c := connect(t, refuses(t, status, &asked))
		c.Patience = time.Minute
		c.Waiting = func(error) {
			if asked.Load() >= 2 {
				c.Patience = 0 // it has asked again
			}
		}
		if _, err := c.Jobs().Submit(t.Context(), protocol.Spec{}); !errors.Is(err, ErrUnavailable) || asked.Load() < 2 {
			t.Errorf("status %d after %d requests: %v", status, asked.Load(), err)
		}
	}
}

// TestRefusedUpload: the error of a blob that a proxy does not accept has the size of the blob, although the proxy does
// not read it to its end.
func TestRefusedUpload(t *testing.T) {
	var asked atomic.Int32
	c := connect(t, refuses(t, http.StatusRequestEntityTooLarge, &asked))
	data := make([]byte, 16<<20)
	_, err := c.Blobs().Put(t.Context(), data)
	var e *Error
	if !errors.As(err, &e) || !e.Proxy || !strings.Contains(err.Error(), "The body has 16.0 MiB") {
		t.Errorf("after %d requests: %v", asked.Load(), err)
	}
}

// TestWrongPath: the error of an address below which there is no API says how to correct it.
func TestWrongPath(t *testing.T) {
	plain := serve(t, http.NotFound)
	moved := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/login") {
			http.Redirect(w, r, "https://sso.example.org/", http.StatusFound)
			return
		}
		http.Redirect(w, r, "https://coppice.example.org"+r.URL.Path, http.StatusMovedPermanently)
	})
	for _, test := range []struct{ server, want string }{
		{plain.URL, "404 Not Found; if a proxy has the API below a path, add the path to the address in --server"},
		{plain.URL + "/coppice", "404 Not Found; check the path /coppice in --server"},
		{moved.URL + "/coppice", "301 Moved Permanently, which redirects it; give --server " +
			"https://coppice.example.org/coppice"},
		{moved.URL + "/login", "302 Found, which redirects it to https://sso.example.org/"},
	} {
		_, err := connect(t, test.server).Jobs().Submit(t.Context(), protocol.Spec{})
		if !errors.Is(err, ErrStranger) || errors.Is(err, ErrUnavailable) || !strings.HasSuffix(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.server, err, test.want)
		}
	}
}
