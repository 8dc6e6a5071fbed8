package dispatch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestPanicEndsRun: a panic in the handling of a message becomes the error of Run, and the lock is free.
func TestPanicEndsRun(t *testing.T) {
	l := newLab(t, never)
	d := New(l.d.cfg)
	guarded(d, func(slots int) { locked(&d.mu, func() { _ = make([]int, 2)[:slots] }) })(-5)
	err := d.Run(t.Context())
	var p *engine.Panic
	if !errors.As(err, &p) || !strings.Contains(string(p.Stack), "panic_test.go") {
		t.Errorf("error %v", err)
	}
	if !d.mu.TryLock() {
		t.Error("the lock is not free")
	}
}

// TestPanicOfADecoder: the connection of a worker is closed if decoding its message panics, and not if the message is
// malformed.
func TestPanicOfADecoder(t *testing.T) {
	var closed []string
	cfg := newLab(t, never).d.cfg
	cfg.Disconnect = func(worker string) { closed = append(closed, worker) }
	d := New(cfg)
	d.cfg.malformed("w1", protocol.ErrMessage)
	d.cfg.malformed("w2", fmt.Errorf("%w: %w", protocol.ErrMessage, protocol.ErrPanic))
	if !slices.Equal(closed, []string{"w2"}) {
		t.Errorf("closed the connections of %v", closed)
	}
}
