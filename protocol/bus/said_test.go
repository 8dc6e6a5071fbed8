package bus

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"
)

// saying is what a client says, and the bytes of the messages in it as they are counted.
type saying struct {
	text  string
	bytes int64
}

// sayings draws lines and messages as clients may send them.
func sayings(t *rapid.T) (out []saying) {
	blank := rapid.SampledFrom([]string{" ", "\t", "  "})
	end := rapid.SampledFrom([]string{"\r\n", "\n"})
	for range rapid.IntRange(1, 20).Draw(t, "sayings") {
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			out = append(out, saying{text: rapid.SampledFrom([]string{"PING", "PONG", "SUB x 1", "unsub 1 20"}).Draw(t, "line") + end.Draw(t, "end")})
		case 1:
			head := "NATS/1.0\r\n" + strings.Repeat("a: b\r\n", rapid.IntRange(0, 3).Draw(t, "header")) + "\r\n"
			body := head + strings.Repeat("x", rapid.IntRange(0, 300).Draw(t, "size"))
			b := blank.Draw(t, "blank")
			line := strings.Join([]string{rapid.SampledFrom([]string{"HPUB", "hpub"}).Draw(t, "command"), "up", fmt.Sprint(len(head)), fmt.Sprint(len(body))}, b)
			out = append(out, saying{line + end.Draw(t, "end") + body + "\r\n", int64(len(line) + len(body) + 2 + eachMessage)})
		default:
			body := rapid.SampledFrom([]string{"", "PUB up 3\r\nabc\r\n", strings.Repeat("\r\n", 50), strings.Repeat("y", 5000)}).Draw(t, "body")
			b := blank.Draw(t, "blank")
			words := []string{rapid.SampledFrom([]string{"PUB", "pub", "Pub"}).Draw(t, "command"), "up"}
			if rapid.Bool().Draw(t, "reply") {
				words = append(words, "re")
			}
			line := strings.Join(append(words, fmt.Sprint(len(body))), b)
			out = append(out, saying{line + end.Draw(t, "end") + body + "\r\n", int64(len(line) + len(body) + 2 + eachMessage)})
		}
	}
	return out
}

// However it is cut into reads, what is counted after a read are the messages that have ended.
func TestSaid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text string
		ends := make(map[int]int64) // bytes of messages by where they end
		for _, one := range sayings(t) {
			text += one.text
			ends[len(text)] += one.bytes
		}
		var s said
		var got, want int64
		for at := 0; at < len(text); {
			to := at + rapid.IntRange(1, min(len(text)-at, 6000)).Draw(t, "read")
			n, err := s.next([]byte(text[at:to]))
			if err != nil {
				t.Fatalf("%v in %q", err, text)
			}
			got += n
			for i := at + 1; i <= to; i++ {
				want += ends[i]
			}
			if got != want {
				t.Fatalf("%d bytes after %q, want %d", got, text[:to], want)
			}
			at = to
		}
	})
}

// What the server could understand in another way is an error, however it comes.
func TestSaidRefuses(t *testing.T) {
	for _, text := range []string{"PUB x\r 55\n", "PUB x 1\r0\r\n", "PUB x\r\n", "PUB x -1\r\n", "PUB x 5 \r\n", "PUB\r\n", "HPUB x 1 99999999999\r\n", strings.Repeat("x", maxLine+1)} {
		for cut := range len(text) {
			var s said
			_, err := s.next([]byte(text[:cut]))
			if err == nil {
				_, err = s.next([]byte(text[cut:]))
			}
			if err == nil {
				t.Errorf("%.20q, cut at %d, was taken", text, cut)
			}
		}
	}
}

// FuzzSaid has a client say whatever it likes: what the server delivers of it has come
// through the intake.
func FuzzSaid(f *testing.F) {
	s := startServer(f, ServerOptions{Name: "a"})
	own := connect(f, Options{Server: s}).link.(*natsLink).nc
	if _, err := own.Subscribe(">", func(*nats.Msg) {}); err != nil {
		f.Fatal(err)
	}
	f.Add("PUB up 3\r\nabc\r\nPING\r\npub up re 0\r\n\r\n", 20)
	f.Add("HPUB up 12 13\r\nNATS/1.0\r\n\r\nx\r\nPUB\tup 2\n\r\n\r\n", 5)
	f.Add("PUB up\r 22\nPUB x 2\r\nab\r\nPUB x 2\r\nab\r\n\r\n", 7)
	f.Add("PUB up 1\r0\r\n0123456789\r\nPUB up 1048577\r\n", 8)
	f.Add("SUB > 1\r\nSUB up q 2\r\n PUB up 1\r\na\r\nPUB up +1\r\na\r\n", 1)
	f.Add(strings.Repeat("PUB up 1\r\na\r\n", 1000), 6000)
	f.Fuzz(func(t *testing.T, text string, step int) {
		entered := func() int64 {
			s.intake.mu.Lock()
			defer s.intake.mu.Unlock()
			return s.intake.room.since + s.intake.room.entered
		}
		s.intake.mu.Lock()
		s.intake.room = room{most: math.MaxInt64 / 2}
		s.intake.mu.Unlock()
		before := own.Stats()
		sayAll(t, s, text, step)
		if err := own.FlushTimeout(patience); err != nil {
			t.Fatal(err)
		}
		after := own.Stats()
		if came := after.InBytes - before.InBytes + eachMessage*(after.InMsgs-before.InMsgs); int64(came) > entered() {
			t.Errorf("%d bytes came in with %d, of %q", came, entered(), text)
		}
	})
}

// sayAll says something to a server, so many bytes at a time, and waits until the server has
// taken it.
func sayAll(t *testing.T, s *Server, text string, step int) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.ClientURL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	text = "CONNECT {\"verbose\":false,\"headers\":true}\r\n" + text
	said := make(chan struct{})
	go func() {
		defer close(said)
		for b := range slices.Chunk([]byte(text), max(1, step)) {
			if _, err := c.Write(b); err != nil {
				return // the server has closed it
			}
		}
		_ = c.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(io.Discard, c)
	<-said
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the server does not end it: %q", text)
	}
}
