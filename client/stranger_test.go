package client

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// says listens and writes text to whoever connects.
func says(t *testing.T, l net.Listener, text string) string {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Write([]byte(text))
			c.Read(make([]byte, 1024)) // the request: closing before would reset the connection
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

// What answers and is no coordinator is named with its address in one sentence, at once.
func TestStrangers(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	page := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write([]byte("<html>log in</html>"))
	})
	plain := serve(t, http.NotFound)
	old := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		w.Write([]byte("<html>The plain HTTP request was sent to HTTPS port</html>"))
	})
	tests := []struct{ name, address, says string }{
		{"another HTTP server", plain.URL, "answers the request GET /v1/jobs with the status 404 Not Found"},
		{"a web page", page.URL, "a web page"},
		{"NATS", says(t, testkit.Listen(t), "INFO {\"server_id\":\"X\",\"version\":\"2.15.2\"} \r\n"), "a NATS server answers there"},
		{"SSH", says(t, testkit.Listen(t), "SSH-2.0-OpenSSH\r\n"), "does not use HTTP"},
		{"TLS of Go", strings.TrimPrefix(secure.URL, "https://"), "wants TLS"},
		{"TLS of nginx", old.URL, "wants TLS"},
		{"TLS that answers with an alert", says(t, testkit.Listen(t), "\x15\x03\x01\x00\x02\x02\x46\r\n\r\n"), "wants TLS"},
		{"plain HTTP for https", "https://" + strings.TrimPrefix(plain.URL, "http://"), "uses plain HTTP"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := connect(t, test.address)
			start := time.Now()
			_, err := c.Jobs(t.Context())
			if !errors.Is(err, ErrStranger) || !strings.Contains(err.Error(), test.says) || strings.ContainsAny(err.Error(), "\n{<") {
				t.Errorf("got %v", err)
			}
			host := strings.TrimPrefix(strings.TrimPrefix(test.address, "https://"), "http://")
			if err != nil && strings.Count(err.Error(), host) != 1 {
				t.Errorf("%q does not name %s once", err, host)
			}
			if took := time.Since(start); took > c.Patience/2 {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// A stranger among the addresses disturbs nothing; where a coordinator was met before,
// one is waited for.
func TestStrangerAmongOthers(t *testing.T) {
	plain := serve(t, http.NotFound)
	real := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, protocol.JobList{Jobs: []protocol.JobInfo{{ID: 7}}})
	})
	c := connect(t, plain.URL, real.URL)
	if jobs, err := c.Jobs(t.Context()); err != nil || len(jobs) != 1 {
		t.Errorf("%v, %v", jobs, err)
	}
	dark := connect(t, plain.URL, dead(t))
	dark.Patience = 50 * time.Millisecond
	_, err := dark.Jobs(t.Context())
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, ErrStranger) {
		t.Errorf("a stranger and a dead address: %v", err)
	}
	n := 0
	flaky := connect(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 2 {
			http.NotFound(w, r)
			return
		}
		answer(w, http.StatusOK, protocol.JobList{})
	}).URL)
	for range 2 {
		if _, err := flaky.Jobs(t.Context()); err != nil {
			t.Errorf("a proxy without a coordinator behind it for a moment: %v", err)
		}
	}
}

// A refused connection is told without the words of package net.
func TestRefusedConnection(t *testing.T) {
	c := connect(t, dead(t))
	c.Patience = 50 * time.Millisecond
	_, err := c.Jobs(t.Context())
	want := "no coordinator answers at " + bare(c.Servers()[0]) + ": connection refused"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
