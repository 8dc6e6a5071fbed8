package speed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/allocs"
)

// peerMode has a process of this test be a peer of some kind.
const peerMode = "COPPICE_TEST_PEER"

func TestMain(m *testing.M) {
	if mode := os.Getenv(peerMode); mode != "" {
		os.Exit(bePeer(mode))
	}
	os.Exit(m.Run())
}

// bePeer is a peer that does one thing wrong, or none.
func bePeer(mode string) int {
	switch mode {
	case "missing":
		fmt.Println(`{"missing": "No module named 'torch'"}`)
		return 0
	case "crashes":
		fmt.Fprintln(os.Stderr, "Traceback:\nMemoryError: too much")
		return 3
	case "silent":
		return 0
	case "greets":
		fmt.Println("Welcome!")
		return 0
	case "nameless":
		fmt.Println(`{"versions": {}}`)
		return 0
	case "long":
		fmt.Println(strings.Repeat("x", maxAnswer+1))
		return 0
	}
	fmt.Println(`{"peer": "torch", "versions": {"PyTorch": "1.13"}}`)
	answers := map[string]string{
		"good": `{"seconds": [1, 10], "loss": 0.5}`, "rubbish": "warning: [1, 10]", "few": `{"seconds": [1], "loss": 0.5}`,
		"negative": `{"seconds": [1, -1], "loss": 0.5}`, "two": `{"seconds": [1, 10], "loss": 0.5} {}`,
		"other": `{"seconds": [1, 10], "loss": 0.9}`, "unknown": `{"time": 3}`,
		"not a number": `{"seconds": [1, NaN], "loss": 0.5}`,
	}
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		if mode == "dies" {
			fmt.Fprintln(os.Stderr, "ValueError: of the job "+s.Text())
			return 1
		}
		fmt.Println(answers[mode])
	}
	return 0
}

func startPeer(t *testing.T, mode string) (*Peer, error) {
	t.Helper()
	t.Setenv(peerMode, mode)
	p, err := StartPeer(t.Context(), os.Args[0])
	if err == nil {
		t.Cleanup(p.Close)
	}
	return p, err
}

// TestPeersInTurns: a peer's ratio is that of each run's two figures.
func TestPeersInTurns(t *testing.T) {
	p, err := startPeer(t, "good")
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	with, without := counting("a", &order), counting("b", &order)
	with.Jobs, with.Agreement = map[string]Job{"torch": {"kind": "ldlf"}, "other": {}}, 0.1
	r, err := Measure(t.Context(), "ldlf", []Case{with, without}, []*Peer{p}, Options{Runs: 3, Limit: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows[0].Peers) != 1 || r.Rows[2].Peers != nil || r.Versions["PyTorch"] != "1.13" {
		t.Fatalf("%+v, versions %v", r.Rows, r.Versions)
	}
	got := r.Rows[0].Peers[0]
	if got.Peer != "torch" || got.Seconds.Median != 1 || got.Ratio != (Spread{1.0 / 3, 1.0 / 4, 1.0 / 2}) ||
		got.Loss != 0.5 {
		t.Errorf("%+v", got)
	}
}

// TestColdPeer: where a peer's runs are long, its first one counts.
func TestColdPeer(t *testing.T) {
	p, err := startPeer(t, "good")
	if err != nil {
		t.Fatal(err)
	}
	var order, notes []string
	c := counting("a", &order)
	c.Jobs, c.Cold = map[string]Job{"torch": {}}, true
	_, err = Measure(t.Context(), "forest", []Case{c}, []*Peer{p}, Options{Runs: 1, Note: func(s string) {
		notes = append(notes, s)
	}})
	if err != nil || strings.Join(notes, "; ") != "a: Coppice, warm-up run, not counted; a: Coppice, run 1 of 1; a: "+
		"torch, run 1 of 1" {
		t.Errorf("%q: error %v", notes, err)
	}
}

// TestPeerThatFails: whatever a peer does wrong is an error that says so.
func TestPeerThatFails(t *testing.T) {
	for mode, says := range map[string]string{
		"dies":    `the peer torch ended unexpectedly: ValueError: of the job {"kind":"ldlf"}`,
		"rubbish": `wrote "warning: [1, 10]", want a line of JSON`,
		"few":     "answers with 1 times, want 2", "negative": "a time of -1 s",
		"two": "the line has more than one JSON value", "other": "do not compute the same thing", "unknown": "time",
		"not a number": "NaN",
	} {
		t.Run(mode, func(t *testing.T) {
			p, err := startPeer(t, mode)
			if err != nil {
				t.Fatal(err)
			}
			var order []string
			c := counting("a", &order)
			c.Jobs, c.Agreement = map[string]Job{"torch": {"kind": "ldlf"}}, 0.1
			_, err = Measure(t.Context(), "ldlf", []Case{c}, []*Peer{p}, Options{Runs: 1})
			if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one that says %q", err, says)
			}
		})
	}
}

// TestPeerThatDoesNotStart: what is not installed is absent, anything else an error.
func TestPeerThatDoesNotStart(t *testing.T) {
	var absent *Absent
	if _, err := StartPeer(t.Context(), "coppice-no-such-python"); !errors.As(err, &absent) ||
		absent.Reason != "coppice-no-such-python is not installed" {
		t.Errorf("error %v", err)
	}
	if _, err := startPeer(t, "missing"); !errors.As(err, &absent) || absent.Reason != "No module named 'torch'" {
		t.Errorf("a module that is missing: error %v", err)
	}
	for mode, says := range map[string]string{
		"crashes": "ended unexpectedly: MemoryError: too much", "silent": "ended", "greets": `"Welcome!"`,
		"nameless": "does not tell its name", "long": "too long",
	} {
		_, err := startPeer(t, mode)
		if err == nil || errors.As(err, &absent) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v, want one that says %q", mode, err, says)
		}
	}
}

// TestPeerInterrupted: an interrupt ends the wait for a peer.
func TestPeerInterrupted(t *testing.T) {
	p, err := startPeer(t, "good")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var v any
	if err := p.answer(ctx, time.Hour, &v); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if err := p.answer(t.Context(), time.Millisecond, &v); err == nil ||
		!strings.Contains(err.Error(), "does not answer within 1ms") {
		t.Errorf("a peer that is late: error %v", err)
	}
}

// FuzzAnswer: whatever a peer writes, it is refused or a job's figures.
func FuzzAnswer(f *testing.F) {
	for _, b := range []string{`{"seconds": [1, 10], "loss": 0.5}`, "", "null", `{"seconds": [1e999, 1]}`,
		`{"seconds": [1,2]} x`} {
		f.Add([]byte(b))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var got Figures
		var err error
		allocs.AtMost(t, 64*len(b)+64<<10, "an answer", func() { err = parseLine(b, &got) })
		if err == nil && got.check(2, 0) == nil && !(got.Seconds[0] > 0 && got.Seconds[1] > 0) {
			t.Errorf("%+v", got)
		}
	})
}
