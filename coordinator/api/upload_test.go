package api

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

// A client that stops in the middle of an upload is given up; one that comes to the
// end of it keeps its connection for as long as the answer takes.
func TestUploadsEnd(t *testing.T) {
	s := &Server{uploadWithin: 20 * time.Millisecond}
	errs := make(chan error, 1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := s.receive(w, r)
		if err == nil {
			select {
			case <-r.Context().Done():
				err = r.Context().Err()
			case <-time.After(3 * s.uploadWithin):
			}
		}
		errs <- err
	}))
	defer web.Close()
	for body, want := range map[string]error{"half": os.ErrDeadlineExceeded, "allofit.": nil} {
		conn, err := net.Dial("tcp", web.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n"+body); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-errs:
			if !errors.Is(err, want) {
				t.Errorf("%q: %v, want %v", body, err, want)
			}
		case <-time.After(limit):
			t.Fatalf("%q is waited for without end", body)
		}
	}
}
