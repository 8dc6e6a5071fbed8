package bus

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestRequest(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	server, client := connect(t, Options{Server: s}), connect(t, Options{URLs: []string{s.ClientURL()}})
	if _, err := server.Serve("echo", "q", func(b []byte) []byte { return append([]byte("got "), b...) }); err != nil {
		t.Fatal(err)
	}
	b, err := client.Request(within(t), "echo", []byte("x"))
	if err != nil || string(b) != "got x" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestRequestWithoutAnswer(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	c := connect(t, Options{Server: s})
	began := time.Now()
	if _, err := c.Request(within(t), "nobody", []byte("x")); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("nobody serves: %v", err)
	}
	if d := time.Since(began); d > patience/2 {
		t.Errorf("said so after %v", d)
	}
	if _, err := c.Serve("mute", "", func([]byte) []byte { return nil }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Request(ctx, "mute", []byte("x")); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("nobody answers: %v", err)
	}
}

// Handlers run side by side, as many as allowed and no more, and Close waits for
// them.
func TestServeIsConcurrentAndBounded(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	server, client := connect(t, Options{Server: s}), connect(t, Options{Server: s})
	var running, most atomic.Int64
	release := make(chan struct{})
	if _, err := server.Serve("slow", "", func(b []byte) []byte {
		n := running.Add(1)
		defer running.Add(-1)
		for {
			old := most.Load()
			if n <= old || most.CompareAndSwap(old, n) {
				break
			}
		}
		<-release
		return b
	}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 2 * serveAtOnce() {
		wg.Go(func() {
			if b, err := client.Request(within(t), "slow", []byte("x")); err != nil || !bytes.Equal(b, []byte("x")) {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
	eventually(t, "handlers at work", func() bool { return running.Load() == int64(serveAtOnce()) })
	close(release)
	wg.Wait()
	server.Close()
	if running.Load() != 0 {
		t.Error("Close did not wait for handlers")
	}
	if most.Load() != int64(serveAtOnce()) {
		t.Errorf("%d handlers at once", most.Load())
	}
}

// One member of a queue group gets each request.
func TestQueueGroup(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	var calls atomic.Int64
	for range 3 {
		c := connect(t, Options{Server: s})
		if _, err := c.Serve("q", "group", func(b []byte) []byte { calls.Add(1); return b }); err != nil {
			t.Fatal(err)
		}
	}
	client := connect(t, Options{Server: s})
	for range 50 {
		if _, err := client.Request(within(t), "q", []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if calls.Load() != 50 {
		t.Errorf("%d calls for 50 requests", calls.Load())
	}
}

// A request that names another's subject for its answer is dropped: neither it nor its
// answer, nor what is passed on of it, goes there.
func TestAnswersWhereTheyMayBe(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	server := connect(t, Options{Server: s, MayAnswer: func(subject, reply string) bool {
		return subject == "ask" && reply == "answers.x"
	}})
	client := connect(t, Options{URLs: []string{s.ClientURL()}})
	victim, answers := listen(t, client, "victim"), listen(t, client, "answers.x")
	var asked atomic.Int64
	if _, err := server.Serve("ask", "", func(b []byte) []byte { asked.Add(1); return b }); err != nil {
		t.Fatal(err)
	}
	for _, reply := range []string{"victim", "answers.x"} { // in this order
		if err := client.Send("ask", reply, message(8, 1)); err != nil {
			t.Fatal(err)
		}
	}
	receive(t, answers)
	select {
	case <-victim:
		t.Error("an answer went to another")
	default:
	}
	if asked.Load() != 1 {
		t.Errorf("%d requests were handled", asked.Load())
	}
}
